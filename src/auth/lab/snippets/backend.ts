import { quote } from './quote.ts'
import type { SnippetValues } from './values.ts'

/** A backend service in JavaScript. */
export function backendJs({ clientId, scope, fhirBaseUrl, requests }: SnippetValues): string {
  return `import { log } from 'node:console'
import { createPrivateKey, randomUUID, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { env } from 'node:process'

const CLIENT_ID = ${quote(clientId)}
const SCOPE = ${quote(scope)}
const FHIR = ${quote(fhirBaseUrl)}
const READS = ${quote(requests)}

async function getJson(url, options) {
  const response = await fetch(url, options)
  const body = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(body))
  return body
}

function signAssertion(audience) {
  const key = createPrivateKey(readFileSync('private-key.pem'))
  const alg = key.asymmetricKeyType === 'ec' ? 'ES384' : 'RS384'
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: CLIENT_ID, sub: CLIENT_ID, aud: audience, exp: now + 300, iat: now, jti: randomUUID() }
  const content = [{ alg, kid: env.KID, typ: 'JWT' }, claims]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha384', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return content + '.' + signature.toString('base64url')
}

const { token_endpoint } = await getJson(FHIR + '/.well-known/smart-configuration')
const { access_token } = await getJson(token_endpoint, {
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'client_credentials',
    scope: SCOPE,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: signAssertion(token_endpoint),
  }),
})
const headers = { Authorization: 'Bearer ' + access_token }
const found = {}
for (const path of READS) found[path] = await getJson(FHIR + '/' + path, { headers })
log(JSON.stringify(found, null, 2))
`
}

/** A backend service in Python. */
export function backendPython({ clientId, scope, fhirBaseUrl, requests }: SnippetValues): string {
  return `import json
import os
import time
import uuid
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

CLIENT_ID = ${quote(clientId)}
SCOPE = ${quote(scope)}
FHIR = ${quote(fhirBaseUrl)}
READS = ${quote(requests)}


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


token_endpoint = get_json(FHIR + "/.well-known/smart-configuration")["token_endpoint"]
form = {
    "grant_type": "client_credentials",
    "scope": SCOPE,
    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    "client_assertion": sign_assertion(token_endpoint),
}
token = get_json(token_endpoint, urlencode(form).encode())
headers = {"Authorization": "Bearer " + token["access_token"]}
found = {path: get_json(FHIR + "/" + path, headers=headers) for path in READS}
print(json.dumps(found, indent=2))
`
}
