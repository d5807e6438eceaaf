import { findSearchParameter } from '../../../fhir/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import type { Client } from '../../oauth/clients/client.ts'
import { isLoopbackHttp } from '../../oauth/clients/urls.ts'
import { isForSystemsOnly } from '../../oauth/clients/validate.ts'
import { fillExample, type SnippetValues } from './fill.ts'

/** A complete app with the values of a registered one. */
export interface Snippet {
  readonly title: string
  readonly file: string
  /** How it is run, or why there is none. */
  readonly how: string
  readonly code?: string
}

interface Origin {
  readonly secret: string | undefined
  readonly fhirBaseUrl: string
}

export function makeSnippets(client: Client, { secret, fhirBaseUrl }: Origin): readonly Snippet[] {
  const { id, scope, authMethod, redirectUris } = client
  const redirectUri = redirectUris[0] ?? ''
  const values = {
    clientId: id,
    secret,
    scope,
    redirectUri,
    fhirBaseUrl,
    requests: chooseRequests(scope),
  }
  if (isForSystemsOnly(scope)) return makeBackendSnippets(values)
  if (authMethod === 'private_key_jwt')
    return [
      explain(
        'A server with keys',
        'There is no sample for an app that signs and has users. Use a library, such as openid-client.',
      ),
    ]
  return authMethod === 'none' ? makePublicSnippets(values) : makeServerSnippets(values)
}

function makePublicSnippets(values: SnippetValues): readonly Snippet[] {
  const { redirectUri } = values
  const python = isOnLoopback(redirectUri)
    ? {
        title: 'Python',
        file: 'app.py',
        how: `Run it: python3 app.py. It opens ${redirectUri} in the browser. Needs no packages.`,
        code: fillExample('server.py', values),
      }
    : explain(
        'Python',
        'The sample listens on this computer: add a redirect URI such as http://localhost:3000/callback as the first one.',
      )
  if (!/^https?:/.test(redirectUri))
    return [
      explain(
        'A page in the browser',
        'The redirect URI of this app opens a native app. Add an http or https one as the first one for these samples.',
      ),
      python,
    ]
  const { file, how } = describeServing(redirectUri)
  return [
    { title: 'Plain fetch', file, how: `${how} Needs no library.`, code: fillExample('fetch.html', values) },
    { title: 'fhirclient', file, how: `${how} ${FROM_CDN}`, code: fillExample('fhirclient.html', values) },
    python,
  ]
}

const FROM_CDN =
  'It loads the library from a CDN. Without internet access, run npm install fhirclient in the folder and load node_modules/fhirclient/build/fhir-client.js instead, or use Plain fetch.'

/** How to serve a page without a server of one's own, where a folder of files suffices. */
function describeServing(redirectUri: string): Pick<Snippet, 'file' | 'how'> {
  const url = URL.parse(redirectUri)
  const found = url && isLoopbackHttp(url) ? /^\/([\w.-]+\.html)?$/.exec(url.pathname) : null
  const file = found?.[1] ?? 'index.html'
  const how =
    url && found
      ? `Save it as ${file}, run python3 -m http.server ${url.port || 80} in its folder, and open ${redirectUri}.`
      : `Serve it at ${redirectUri} and at the launch URL, and open it.`
  return { file, how }
}

function makeServerSnippets(values: SnippetValues): readonly Snippet[] {
  const browser = explain(
    'fhirclient',
    'A page in the browser cannot keep a secret. Register a public app for it.',
  )
  if (!isOnLoopback(values.redirectUri))
    return [
      explain(
        'A server',
        'The samples listen on this computer: add a redirect URI such as http://localhost:3000/callback as the first one.',
      ),
      browser,
    ]
  const secret =
    values.secret === undefined ? ' Set the environment variable CLIENT_SECRET to the secret.' : ''
  const how = `It opens at ${values.redirectUri}.${secret} Needs no packages.`
  return [
    {
      title: 'Plain fetch',
      file: 'app.mjs',
      how: `Run it: node app.mjs. ${how}`,
      code: fillExample('server.mjs', values),
    },
    {
      title: 'Python',
      file: 'app.py',
      how: `Run it: python3 app.py. ${how}`,
      code: fillExample('server.py', values),
    },
    browser,
  ]
}

function makeBackendSnippets(values: SnippetValues): readonly Snippet[] {
  const key =
    'Put the private key of the app into private-key.pem, and its kid into the environment variable KID.'
  return [
    {
      title: 'Plain fetch',
      file: 'app.mjs',
      how: `${key} Run it: node app.mjs. Needs no packages.`,
      code: fillExample('backend.mjs', values),
    },
    {
      title: 'Python',
      file: 'app.py',
      how: `${key} Run it: pip install "pyjwt[crypto]" and python3 app.py.`,
      code: fillExample('backend.py', values),
    },
  ]
}

function explain(title: string, how: string): Snippet {
  return { title, file: '', how }
}

function isOnLoopback(url: string): boolean {
  const parsed = URL.parse(url)
  return parsed !== null && isLoopbackHttp(parsed)
}

/** Types that an app is likely to show, most useful first. */
const USEFUL = ['Patient', 'Condition', 'Observation', 'MedicationRequest', 'AllergyIntolerance']
const MAX_REQUESTS = 2

/** Requests that the scopes permit: of the patient, if there is one. */
function chooseRequests(scope: string): readonly string[] {
  const readable = parseScopes(scope).flatMap(one =>
    one.kind === 'resource' && (one.permissions.has('r') || one.permissions.has('s')) ? [one] : [],
  )
  const ofPatient = readable.filter(({ context }) => context === 'patient')
  const isOfPatient = ofPatient.length > 0
  const usable = isOfPatient ? ofPatient : readable
  const types = new Set([...USEFUL, ...usable.map(({ type }) => type).filter(type => type !== '*')])
  const requests = [...types].flatMap(type => {
    const found = usable.find(one => one.type === type || one.type === '*')
    return found ? [writeRequest(type, found.query, isOfPatient)] : []
  })
  return requests.length === 0 ? ['Patient?_count=5'] : requests.slice(0, MAX_REQUESTS)
}

/** A search has the filter of its scope, which some servers require. */
function writeRequest(
  type: string,
  filter: readonly (readonly [string, string])[],
  isOfPatient: boolean,
): string {
  if (isOfPatient && type === 'Patient') return 'Patient/{patient}'
  const patient = isOfPatient && findSearchParameter(type, 'patient') ? ['patient={patient}'] : []
  const filters = filter.map(pair => pair.map(encodeURIComponent).join('='))
  return `${type}?${[...patient, ...filters, '_count=5'].join('&')}`
}
