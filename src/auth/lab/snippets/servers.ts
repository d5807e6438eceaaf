import { checkPatient, NO_PATIENT, needsPatient } from './check-patient.ts'
import { quote } from './quote.ts'
import { requestLaunch } from './request-launch.ts'
import type { SnippetValues } from './values.ts'

/** A server in JavaScript, for an app with a secret. */
export function serverJs(values: SnippetValues): string {
  const { clientId, secret, scope, isLaunched, redirectUri, fhirBaseUrl, requests } = values
  return `import { log } from 'node:console'
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'${secret === undefined ? "\nimport { env } from 'node:process'" : ''}

const CLIENT_ID = ${quote(clientId)}
const CLIENT_SECRET = ${secret === undefined ? 'env.CLIENT_SECRET' : quote(secret)}
const SCOPE = ${quote(scope)}
const REDIRECT_URI = ${quote(redirectUri)}
const FHIR = ${quote(fhirBaseUrl)}
const READS = ${quote(requests)}

// The code_verifier of each sign-in that has begun, by its state.
const pending = new Map()

async function getJson(url, options) {
  const response = await fetch(url, options)
  const body = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(body))
  return body
}

const discover = () => getJson(FHIR + '/.well-known/smart-configuration')

// The launch URL has iss and launch. Without them the app starts by itself.
async function begin(query) {
  const iss = query.get('iss') ?? FHIR
  if (iss !== FHIR) throw new Error('Unknown iss: ' + iss)
  const { authorization_endpoint } = await discover()
  const state = randomBytes(16).toString('base64url')
  const verifier = randomBytes(32).toString('base64url')
  pending.set(state, verifier)
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT_URI,
    scope: SCOPE,
    state,
    aud: FHIR,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
${requestLaunch(isLaunched, 2)}
  return authorization_endpoint + '?' + parameters
}

// The redirect URI has code and state.
async function finish(query) {
  const verifier = pending.get(query.get('state'))
  if (verifier === undefined) throw new Error('Unknown state. Start again.')
  pending.delete(query.get('state'))
  const { token_endpoint } = await discover()
  const basic = [CLIENT_ID, CLIENT_SECRET].map(encodeURIComponent).join(':')
  const { access_token, patient } = await getJson(token_endpoint, {
    method: 'POST',
    headers: { Authorization: 'Basic ' + Buffer.from(basic).toString('base64') },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: query.get('code'),
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    }),
  })${checkPatient('patient', requests, 2)}
  const headers = { Authorization: 'Bearer ' + access_token }
  const found = {}
  for (const path of READS.map(path => path.replace('{patient}', patient)))
    found[path] = await getJson(FHIR + '/' + path, { headers })
  return found
}

const { port, hostname } = new URL(REDIRECT_URI)
createServer(async (request, response) => {
  const { searchParams: query, pathname } = new URL(request.url, REDIRECT_URI)
  try {
    if (pathname === '/favicon.ico') response.writeHead(404).end()
    else if (query.has('error')) throw new Error(query.get('error') + ': ' + query.get('error_description'))
    else if (query.has('code')) response.end(JSON.stringify(await finish(query), null, 2))
    else response.writeHead(302, { Location: await begin(query) }).end()
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
}).listen(Number(port || 80), hostname, () => log('Open ' + REDIRECT_URI))
`
}

/** A server in Python. With a secret, or for a public app. */
export function serverPython(values: SnippetValues): string {
  const { clientId, scope, isLaunched, redirectUri, fhirBaseUrl, requests } = values
  return `import base64
import hashlib
import json
${values.isPublic || values.secret !== undefined ? '' : 'import os\n'}import secrets
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

CLIENT_ID = ${quote(clientId)}
CLIENT_SECRET = ${describeSecret(values)}
SCOPE = ${quote(scope)}
REDIRECT_URI = ${quote(redirectUri)}
FHIR = ${quote(fhirBaseUrl)}
READS = ${quote(requests)}

# The code_verifier of each sign-in that has begun, by its state.
pending = {}


def get_json(url, data=None, headers={}):
    try:
        with urlopen(Request(url, data=data, headers=headers)) as response:
            return json.load(response)
    except HTTPError as error:
        raise RuntimeError(error.read().decode()) from error


def discover():
    return get_json(FHIR + "/.well-known/smart-configuration")


def begin(query):
    # The launch URL has iss and launch. Without them the app starts by itself.
    iss = query.get("iss", FHIR)
    if iss != FHIR:
        raise RuntimeError("Unknown iss: " + iss)
    state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
    pending[state] = verifier
    digest = hashlib.sha256(verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT_URI,
        "scope": SCOPE,
        "state": state,
        "aud": FHIR,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    if "launch" in query:
        parameters["launch"] = query["launch"]${isLaunched ? '\n        parameters["scope"] = "launch " + SCOPE' : ''}
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
    token = get_json(discover()["token_endpoint"], urlencode(form).encode(), headers)${needsPatient(requests) ? `\n    if "patient" not in token:\n        raise RuntimeError(${quote(NO_PATIENT)})` : ''}
    headers = {"Authorization": "Bearer " + token["access_token"]}
    paths = [path.replace("{patient}", token.get("patient", "")) for path in READS]
    return {path: get_json(FHIR + "/" + path, headers=headers) for path in paths}


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
`
}

function describeSecret({ secret, isPublic }: SnippetValues): string {
  if (isPublic) return 'None'
  return secret === undefined ? 'os.environ["CLIENT_SECRET"]' : quote(secret)
}
