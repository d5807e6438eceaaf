import json
import os
import time
import uuid
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

CLIENT_ID = "my-service"
SCOPE = "system/Patient.rs"
FHIR_BASE = "http://localhost:8080/fhir"
READS = ["Patient?_count=5"]


def get_json(url, data=None, headers={}):
    try:
        with urlopen(Request(url, data=data, headers=headers)) as response:
            return json.load(response)
    except HTTPError as error:
        raise RuntimeError(error.read().decode()) from error


def sign_assertion(audience):
    with open("private-key.pem", "rb") as file:
        key = load_pem_private_key(file.read(), None)
    algorithm = "ES384" if isinstance(key, EllipticCurvePrivateKey) else "RS384"
    now = int(time.time())
    claims = {"iss": CLIENT_ID, "sub": CLIENT_ID, "aud": audience, "exp": now + 300, "iat": now, "jti": str(uuid.uuid4())}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": os.environ["KID"]})


token_endpoint = get_json(FHIR_BASE + "/.well-known/smart-configuration")["token_endpoint"]
form = {
    "grant_type": "client_credentials",
    "scope": SCOPE,
    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    "client_assertion": sign_assertion(token_endpoint),
}
token = get_json(token_endpoint, urlencode(form).encode())
headers = {"Authorization": "Bearer " + token["access_token"]}
found = {path: get_json(FHIR_BASE + "/" + path, headers=headers) for path in READS}
print(json.dumps(found, indent=2))
