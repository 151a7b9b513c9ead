"""A stand-in for the metadata service of an EC2 spot instance, on the node itself: real ones exist on EC2 alone.

As AWS documents it (Spot Instance interruption notices; Use IMDSv2): a token must be fetched by PUT first, the action
is 404 in calm and an object once the instance is to go. `/run/instance-action` holds the object.
"""

import http.server
import pathlib

NOTICE = pathlib.Path("/run/instance-action")


class Service(http.server.BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        wanted = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.answer(200 if wanted else 400, "token" if wanted else "")

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "token":
            self.answer(401, "")
        elif self.path == "/latest/meta-data/spot/instance-action" and NOTICE.exists():
            self.answer(200, NOTICE.read_text())
        else:
            self.answer(404, "")

    def answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("169.254.169.254", 80), Service).serve_forever()
