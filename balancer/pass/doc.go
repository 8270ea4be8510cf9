// Package pass is what the door knows of requests that it passes through without
// reading them whole: sound, pictures, films, moderations and websockets. Which path
// is for which task is here, where a request names its model, and the listener through
// which connections come to net/http. It knows nothing of workers.
package pass
