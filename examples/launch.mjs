/**
 * A SMART app in one file, without a library: `node examples/launch.mjs`, then launch it from the portal (EHR launch) or
 * open http://localhost:3000/launch (standalone). Register it first: docs/tutorials/your-own-app.md.
 */
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'

const {
  SMART_FHIR_BASE_URL = 'http://localhost:8080/fhir',
  CLIENT_ID = 'my-app',
  PORT = '3000',
} = process.env
const { ISS = SMART_FHIR_BASE_URL } = process.env
const redirectUri = `http://localhost:${PORT}/callback`
const scopes = 'patient/Patient.rs patient/Observation.rs'
/** Pending launches by `state`. A real app removes those that are never completed. */
const pending = new Map()

/** 1. The EHR opens this URL with `iss` and `launch`; a user opens it without them. Redirects to the auth server. */
async function launch(query) {
  const iss = query.get('iss') ?? ISS
  // Accept launches only from a known server.
  if (iss !== ISS) return [403, `Unknown FHIR server ${iss}: this app accepts ${ISS} (SMART_FHIR_BASE_URL).`]
  const smart = await json(await fetch(`${iss}/.well-known/smart-configuration`))
  const state = random()
  const verifier = random()
  pending.set(state, { smart, verifier })
  const url = new URL(smart.authorization_endpoint)
  url.search = new URLSearchParams({
    ...{ response_type: 'code', client_id: CLIENT_ID, redirect_uri: redirectUri, state, aud: iss },
    ...{ code_challenge: createHash('sha256').update(verifier).digest('base64url') },
    ...{ code_challenge_method: 'S256' },
    ...(query.has('launch')
      ? { launch: query.get('launch'), scope: `launch ${scopes}` }
      : { scope: `launch/patient ${scopes}` }),
  })
  // The cookie binds the launch to this browser, so that no other browser can complete it.
  return [
    302,
    '',
    { location: url.href, 'set-cookie': `state=${state}; HttpOnly; SameSite=Lax; Path=/callback` },
  ]
}

/** 2. The auth server redirects here with a code or an error. Exchanges the code for a token and reads with it. */
async function callback(query, cookie = '') {
  const state = query.get('state')
  const started = cookie.split('; ').includes(`state=${state}`) && pending.get(state)
  pending.delete(state)
  if (!started || query.get('iss') !== started.smart.issuer) return [400, 'Unknown launch.']
  if (query.has('error')) return [403, `${query.get('error')}: ${query.get('error_description') ?? ''}`]
  const { smart, verifier } = started
  const body = new URLSearchParams({
    ...{ grant_type: 'authorization_code', code: query.get('code') ?? '', redirect_uri: redirectUri },
    ...{ client_id: CLIENT_ID, code_verifier: verifier },
  })
  const token = await json(await fetch(smart.token_endpoint, { method: 'POST', body }))
  const read = async path =>
    json(await fetch(`${ISS}/${path}`, { headers: { authorization: `Bearer ${token.access_token}` } }))
  const patient = await read(`Patient/${token.patient}`)
  // The clinician may have granted fewer scopes than the app requested.
  const mayRead = token.scope.includes('patient/Observation.')
  const { entry = [] } = mayRead
    ? await read(`Observation?patient=${token.patient}&_sort=-date&_count=5`)
    : {}
  const lines = entry.map(
    ({ resource: { code, effectiveDateTime: when, valueQuantity, component = [] } }) => {
      // A blood pressure has two values, each in a component.
      const values = [valueQuantity, ...component.map(part => part.valueQuantity)].filter(Boolean)
      const texts = values.map(({ value, unit = '' }) => `${value} ${unit}`)
      return [when?.slice(0, 10), code.text ?? code.coding?.[0]?.display, texts.join(', ')].join(' ')
    },
  )
  const { family, given = [] } = patient.name[0]
  return [
    200,
    [`${family}, ${given.join(' ')} (${patient.birthDate})`, `Scopes: ${token.scope}`, ...lines].join('\n'),
  ]
}

const random = () => randomBytes(32).toString('base64url')

async function json(response) {
  const body = await response.json()
  if (!response.ok) throw new Error(body.error_description ?? body.issue?.[0]?.details?.text ?? body.error)
  return body
}

createServer(async (request, response) => {
  // A request for `//` is no URL.
  const { pathname, searchParams } = URL.parse(request.url, redirectUri) ?? {}
  const answer = { '/launch': launch, '/callback': callback }[pathname] ?? (() => [404, 'Not found.'])
  try {
    const [status, text, headers = {}] = await answer(searchParams, request.headers.cookie)
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(text)
  } catch (error) {
    const text = error.cause ? `Cannot reach the servers of ${ISS}: are they running?` : error.message
    response.writeHead(502, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
  }
}).listen(Number(PORT), 'localhost', () =>
  console.log(`App: http://localhost:${PORT}/launch
It needs the FHIR server ${ISS} (SMART_FHIR_BASE_URL names another one), and there the app ${CLIENT_ID} with the redirect URI ${redirectUri}.`),
)
