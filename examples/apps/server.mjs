import { log } from 'node:console'
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'

const CLIENT_ID = 'my-app'
const CLIENT_SECRET = process.env.CLIENT_SECRET
const SCOPE = 'launch launch/patient patient/Patient.rs patient/Condition.rs'
const REDIRECT_URI = 'http://localhost:3000/callback'
const FHIR_BASE = 'http://localhost:8080/fhir'
const READS = ['Patient/{patient}', 'Condition?patient={patient}&_count=5']

// For a start without a launch.
const STANDALONE_SCOPE = SCOPE.split(' ')
  .filter(scope => scope !== 'launch')
  .join(' ')

// The code_verifier of each sign-in that has begun, by its state.
const pending = new Map()

async function getJson(url, options) {
  const response = await fetch(url, options)
  const body = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(body))
  return body
}

const discover = () => getJson(`${FHIR_BASE}/.well-known/smart-configuration`)

// The launch URL has iss and launch. Without them the app starts by itself.
async function begin(query) {
  const iss = query.get('iss') ?? FHIR_BASE
  if (iss !== FHIR_BASE) throw new Error(`Unknown iss: ${iss}`)
  const { authorization_endpoint } = await discover()
  const state = randomBytes(16).toString('base64url')
  const verifier = randomBytes(32).toString('base64url')
  pending.set(state, verifier)
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT_URI,
    scope: query.has('launch') ? SCOPE : STANDALONE_SCOPE,
    state,
    aud: FHIR_BASE,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  if (query.has('launch')) parameters.set('launch', query.get('launch'))
  return `${authorization_endpoint}?${parameters}`
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
    headers: { Authorization: `Basic ${Buffer.from(basic).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: query.get('code'),
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    }),
  })
  if (!patient && READS.some(path => path.includes('{patient}')))
    throw new Error(
      'The app was opened without a launch, so it has no patient. Launch it from the portal or the lab, or add launch/patient to its scopes.',
    )
  const headers = { Authorization: `Bearer ${access_token}` }
  const found = {}
  for (const path of READS.map(path => path.replace('{patient}', patient)))
    found[path] = await getJson(`${FHIR_BASE}/${path}`, { headers })
  return found
}

const { port, hostname } = new URL(REDIRECT_URI)
createServer(async (request, response) => {
  try {
    // Throws for a request such as `//`, which is no URL.
    const { searchParams: query, pathname } = new URL(request.url, REDIRECT_URI)
    if (pathname === '/favicon.ico') response.writeHead(404).end()
    else if (query.has('error')) throw new Error(`${query.get('error')}: ${query.get('error_description')}`)
    else if (query.has('code')) response.end(JSON.stringify(await finish(query), null, 2))
    else response.writeHead(302, { Location: await begin(query) }).end()
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
}).listen(Number(port || 80), hostname, () => log(`Open ${REDIRECT_URI}`))
