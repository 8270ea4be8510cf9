#!/usr/bin/env python3
"""Lengthguard is a filter in Python: it refuses bodies over 10 000 bytes.

It is made from the same protos as every plugin, with grpcio and nothing of
Roundhouse. What a plugin in another language must do is all here: check the
cookie, make a certificate, print one line, serve.

    pip install grpcio grpcio-tools cryptography

The protos are looked for in the folder "proto" beside this file. A virtual
environment that holds the packages is named by its interpreter in the first
line of this file.
"""

import base64
import datetime
import os
import sys
from concurrent import futures

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

sys.path.insert(0, "proto")  # a plugin runs in the folder where its file lies
filter_pb2, filter_grpc = grpc.protos_and_services("v1/filter.proto")
plugin_pb2, plugin_grpc = grpc.protos_and_services("v1/plugin.proto")

LIMIT = 10_000


class About(plugin_grpc.PluginServicer):
    def Describe(self, request, context):
        return plugin_pb2.DescribeResponse(
            kind="filter", version="1", filter=plugin_pb2.FilterWants(body=True)
        )


class LengthGuard(filter_grpc.FilterServicer):
    def Begin(self, request, context):
        if len(request.body) <= LIMIT:
            return filter_pb2.BeginResponse()
        message = f"The request has {len(request.body)} bytes; at most {LIMIT} are allowed."
        return filter_pb2.BeginResponse(
            deny=filter_pb2.Deny(status=413, message=message, type="invalid_request_error")
        )


def certificate():
    """A certificate for this run alone, on a curve that grpcio accepts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=10_000))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem, cert


def main():
    if os.environ.get("ROUNDHOUSE_PLUGIN") != "turntable":
        sys.exit("This is a plugin of Roundhouse; name it in a plugin block.")
    key, cert = certificate()
    credentials = grpc.ssl_server_credentials(
        [(key, cert.public_bytes(serialization.Encoding.PEM))],
        root_certificates=os.environ["PLUGIN_CLIENT_CERT"].encode(),
        require_client_auth=True,
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    plugin_grpc.add_PluginServicer_to_server(About(), server)
    filter_grpc.add_FilterServicer_to_server(LengthGuard(), server)
    socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "plugin.sock")
    server.add_secure_port("unix:" + socket, credentials)
    server.start()
    der = base64.b64encode(cert.public_bytes(serialization.Encoding.DER)).decode().rstrip("=")
    # core protocol | our protocol | network | address | rpc | certificate
    print(f"1|1|unix|{socket}|grpc|{der}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
