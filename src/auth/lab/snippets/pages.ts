import { checkPatient } from './check-patient.ts'
import { quote } from './quote.ts'
import { requestLaunch } from './request-launch.ts'
import type { SnippetValues } from './values.ts'

const LIBRARY = 'https://cdn.jsdelivr.net/npm/fhirclient@2/build/fhir-client.js'

/** A page with the library fhirclient. */
export function fhirclientPage(values: SnippetValues): string {
  const { clientId, scope, isLaunched, redirectUri, fhirBaseUrl, requests } = values
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>SMART app</title>
<pre id="out">Signing in…</pre>
<script src="${LIBRARY}"></script>
<script>
  const show = value => {
    document.getElementById('out').textContent = JSON.stringify(value, null, 2)
  }

  const READS = ${quote(requests)}

  const query = new URLSearchParams(location.search)
  const settings = {
    clientId: ${quote(clientId)},
    scope: ${isLaunched ? `(query.has('launch') ? 'launch ' : '') + ` : ''}${quote(scope)},
    redirectUri: ${quote(redirectUri)},
    iss: ${quote(fhirBaseUrl)},
    pkceMode: 'required',
  }

  async function run() {
    if (!window.FHIR) throw new Error('Cannot load fhirclient. Is there a connection to the internet?')
    // Of the launch before, which init would go on with.
    if (query.has('error') || query.has('launch')) sessionStorage.clear()
    if (query.has('error')) throw new Error(query.get('error') + ': ' + query.get('error_description'))
    // Starts the sign-in, and continues here when the browser comes back.
    const client = await FHIR.oauth2.init(settings)
    // Otherwise the iss of the response stays in the address, and a new tab would take it for a launch.
    history.replaceState(null, '', settings.redirectUri)${checkPatient('client.patient.id', requests, 4)}
    const found = {}
    for (const path of READS.map(path => path.replace('{patient}', client.patient.id)))
      found[path] = await client.request(path)
    show(found)
  }

  run().catch(error => show(String(error)))
</script>
</html>
`
}

/** A page without a library. */
export function fetchPage(values: SnippetValues): string {
  const { clientId, scope, isLaunched, redirectUri, fhirBaseUrl, requests } = values
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>SMART app</title>
<pre id="out">Signing in…</pre>
<script type="module">
  const CLIENT_ID = ${quote(clientId)}
  const SCOPE = ${quote(scope)}
  const REDIRECT_URI = ${quote(redirectUri)}
  const FHIR = ${quote(fhirBaseUrl)}
  const READS = ${quote(requests)}

  const query = new URLSearchParams(location.search)

  const show = value => {
    document.getElementById('out').textContent = JSON.stringify(value, null, 2)
  }

  const encode = bytes =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '')

  async function getJson(url, options) {
    const response = await fetch(url, options)
    const body = await response.json()
    if (!response.ok) throw new Error(JSON.stringify(body))
    return body
  }

  const discover = () => getJson(FHIR + '/.well-known/smart-configuration')

  // The launch URL has iss and launch. Without them the app starts by itself.
  async function begin() {
    const iss = query.get('iss') ?? FHIR
    if (iss !== FHIR) throw new Error('Unknown iss: ' + iss)
    const { authorization_endpoint } = await discover()
    const state = encode(crypto.getRandomValues(new Uint8Array(16)))
    const verifier = encode(crypto.getRandomValues(new Uint8Array(32)))
    const challenge = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
    sessionStorage.setItem(state, verifier)
    const parameters = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      scope: SCOPE,
      state,
      aud: FHIR,
      code_challenge: encode(challenge),
      code_challenge_method: 'S256',
    })
${requestLaunch(isLaunched, 4)}
    location.replace(authorization_endpoint + '?' + parameters)
  }

  // The redirect URI has code and state.
  async function finish() {
    const verifier = sessionStorage.getItem(query.get('state'))
    if (verifier === null) throw new Error('Unknown state. Start again.')
    sessionStorage.removeItem(query.get('state'))
    const { token_endpoint } = await discover()
    const { access_token, patient } = await getJson(token_endpoint, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code: query.get('code'),
        redirect_uri: REDIRECT_URI,
        client_id: CLIENT_ID,
        code_verifier: verifier,
      }),
    })
    // A new tab must not use the code again.
    history.replaceState(null, '', REDIRECT_URI)${checkPatient('patient', requests, 4)}
    const headers = { Authorization: 'Bearer ' + access_token }
    const found = {}
    for (const path of READS.map(path => path.replace('{patient}', patient)))
      found[path] = await getJson(FHIR + '/' + path, { headers })
    show(found)
  }

  try {
    if (query.has('error')) throw new Error(query.get('error') + ': ' + query.get('error_description'))
    await (query.has('code') ? finish() : begin())
  } catch (error) {
    show(String(error))
  }
</script>
</html>
`
}
