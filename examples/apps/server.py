import base64
import hashlib
import json
import os
import secrets
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

CLIENT_ID = "my-app"
CLIENT_SECRET = os.environ.get("CLIENT_SECRET")
SCOPE = "launch launch/patient patient/Patient.rs patient/Condition.rs"
REDIRECT_URI = "http://localhost:3000/callback"
FHIR_BASE = "http://localhost:8080/fhir"
READS = ["Patient/{patient}", "Condition?patient={patient}&_count=5"]

# For a start without a launch.
STANDALONE_SCOPE = " ".join(scope for scope in SCOPE.split() if scope != "launch")

# The code_verifier of each sign-in that has begun, by its state.
pending = {}


def get_json(url, data=None, headers={}):
    try:
        with urlopen(Request(url, data=data, headers=headers)) as response:
            return json.load(response)
    except HTTPError as error:
        raise RuntimeError(error.read().decode()) from error


def discover():
    return get_json(FHIR_BASE + "/.well-known/smart-configuration")


def begin(query):
    # The launch URL has iss and launch. Without them the app starts by itself.
    iss = query.get("iss", FHIR_BASE)
    if iss != FHIR_BASE:
        raise RuntimeError("Unknown iss: " + iss)
    state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
    pending[state] = verifier
    digest = hashlib.sha256(verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "scope": SCOPE if "launch" in query else STANDALONE_SCOPE,
        "state": state,
        "aud": FHIR_BASE,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    if "launch" in query:
        parameters["launch"] = query["launch"]
    return discover()["authorization_endpoint"] + "?" + urlencode(parameters)


def finish(query):
    # The redirect URI has code and state.
    form = {
        "grant_type": "authorization_code",
        "code": query["code"],
        "redirect_uri": REDIRECT_URI,
        "code_verifier": pending.pop(query["state"]),
    }
    headers = {}
    if CLIENT_SECRET is None:
        form["client_id"] = CLIENT_ID
    else:
        basic = quote(CLIENT_ID, safe="") + ":" + quote(CLIENT_SECRET, safe="")
        headers["Authorization"] = "Basic " + base64.b64encode(basic.encode()).decode()
    token = get_json(discover()["token_endpoint"], urlencode(form).encode(), headers)
    if "patient" not in token and any("{patient}" in path for path in READS):
        raise RuntimeError("The app was opened without a launch, so it has no patient. Launch it from the portal or the lab, or add launch/patient to its scopes.")
    headers = {"Authorization": "Bearer " + token["access_token"]}
    paths = [path.replace("{patient}", token.get("patient", "")) for path in READS]
    return {path: get_json(FHIR_BASE + "/" + path, headers=headers) for path in paths}


class App(BaseHTTPRequestHandler):
    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        try:
            if self.path == "/favicon.ico":
                self.send_error(404)
            elif "error" in query:
                raise RuntimeError(query["error"] + ": " + query.get("error_description", ""))
            elif "code" in query:
                self.show(200, json.dumps(finish(query), indent=2))
            else:
                location = begin(query)
                self.send_response(302)
                self.send_header("Location", location)
                self.end_headers()
        except (KeyError, RuntimeError) as error:
            self.show(500, repr(error))

    def show(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())


address = urlsplit(REDIRECT_URI)
server = HTTPServer((address.hostname, address.port or 80), App)
print("Open " + REDIRECT_URI, flush=True)
webbrowser.open(REDIRECT_URI)
server.serve_forever()
