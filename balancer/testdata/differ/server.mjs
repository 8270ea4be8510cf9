// Node's own HTTP server: it answers 200 to every request that its parser takes
// whole, and prints the port it listens on.
import http from "node:http";

const server = http.createServer(
  { connectionsCheckingInterval: 100, keepAliveTimeout: 800, headersTimeout: 800, requestTimeout: 800, maxHeaderSize: 65536 },
  (req, res) => {
    req.on("error", () => {});
    req.resume();
    req.on("end", () => res.end("taken"));
  },
);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
