import { LIMITS } from '../../src/auth/base/limits.ts'
import { MAX_SCOPE_LIST_CHARACTERS, MAX_SCOPE_PARAMETERS, MAX_SCOPES } from '../../src/smart/index.ts'
import { BODY_BYTES, FORM_BYTES } from '../../src/web/http/limits.ts'
import { APPS, askConsent, type MeasuredServers } from '../support/measured-servers.ts'
import { type Case, type Cases, form, type MakeCase, onAuth, page, type RefusedCases } from './cases.ts'
import { adminPage, patientPage } from './routes.ts'
import { nest, repeat } from './texts.ts'

const app = APPS['by-category']
const granular = (at: number) => `patient/Observation.rs?category=c${at}`

function authorize(different: Readonly<Record<string, string>>): MakeCase {
  return servers =>
    form('/oauth2/authorize', {
      response_type: 'code',
      state: 'x',
      scope: 'openid',
      client_id: 'by-category',
      aud: servers.fhirUrl,
      redirect_uri: app.redirectUri,
      code_challenge_method: 'S256',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      ...different,
    })(servers)
}

function register(metadata: object): MakeCase {
  return registerText(
    JSON.stringify({
      redirect_uris: ['https://app.example/callback'],
      token_endpoint_auth_method: 'none',
      scope: 'launch patient/*.rs',
      ...metadata,
    }),
  )
}

function registerText(body: string): MakeCase {
  const headers = { 'content-type': 'application/json' }
  return ({ authUrl }) => ({ url: `${authUrl}/oauth2/register`, method: 'POST', headers, body })
}

const urls = (count: number) => repeat(count, at => `https://a${at}.example/`)
const keys = (count: number) => ({
  keys: Array.from({ length: count }, (_, at) => ({
    kty: 'RSA',
    n: 'x'.repeat(342),
    e: 'AQAB',
    kid: `${at}`,
  })),
})

async function consentPage(servers: MeasuredServers): Promise<Case> {
  const url = await askConsent(servers, 'by-category', 'grown')
  return { url, headers: { cookie: servers.user.cookie } }
}

/** What can be grown at the auth server, up to its limit. */
export const ACCEPTED: Cases = {
  'scopes of an authorization request': authorize({
    scope: `openid ${repeat(MAX_SCOPES - 1, granular).join(' ')}`,
  }),
  'characters of scope': authorize({
    scope: `openid ${repeat(90, at => `patient/Observation.rs?code=${'x'.repeat(55)}${at}`).join(' ')}`,
  }),
  'characters of state, nonce and login_hint': authorize({
    state: 'x'.repeat(LIMITS.parameters.state),
    nonce: 'x'.repeat(LIMITS.parameters.nonce),
    login_hint: 'x'.repeat(LIMITS.parameters.login_hint),
  }),
  'the consent page of an app with 100 scopes': consentPage,
  'URLs of a registration': register({
    redirect_uris: urls(LIMITS.urls),
    post_logout_redirect_uris: urls(LIMITS.urls),
  }),
  'scopes of a registration': register({ scope: repeat(MAX_SCOPES, granular).join(' ') }),
  'characters of client_name': register({ client_name: 'x'.repeat(LIMITS.nameCharacters) }),
  'the portal with a few hundred apps': page('/portal'),
  'characters of a search in the portal': page(`/portal?search=${'x'.repeat(LIMITS.searchCharacters)}`),
  'words of a search in the portal': page(
    `/portal?search=${repeat(LIMITS.searchWords, at => `x${at}`).join('+')}`,
  ),
  'the portal with a patient and a client with many URLs': page('/portal?patient=grown&client=seeded-1'),
  'the page of a few hundred apps with access': page('/manage'),
  'the activity page over many records': page('/activity'),
  'the start page of a patient with many visits': patientPage('/home'),
  'the visits of a patient': patientPage('/account/access-log'),
  'the visits of a patient, of which none matches': patientPage('/account/access-log?kind=list'),
  'the visits of a patient in an app': patientPage('/account/access-log?app=seeded-1&until=2020-01-01'),
  'the download of many visits': patientPage('/account/access-log.csv'),
  'the export of many audit records': adminPage('/admin/audit/export.ndjson'),
  'the audit page over many records': adminPage('/admin/audit'),
  'the activity page with a filter': page('/activity?patient=grown&result=refused'),
  'revocations since the end of time': onAuth('/oauth2/revocations?since=99999999999999999999'),
  'a preflight with a few hundred clients': onAuth('/oauth2/jwks', { origin: 'https://app-7.example' }),
}

/** Beyond a limit. */
export const REFUSED: RefusedCases = {
  'bytes of a form': [/65536 bytes/, form('/login', `username=${'x'.repeat(FORM_BYTES)}&password=x`)],
  'bytes of a body': [/1048576 bytes/, registerText(`{"a":"${'x'.repeat(BODY_BYTES)}"}`)],
  'levels of a body': [/500 levels/, registerText(nest(150_000, '{"a":', '}', '1'))],
  'values of a body': [/200000 values/, registerText(`{"a":[${repeat(400_000, () => '1').join(',')}]}`)],
  'scopes of an authorization request': [
    /100 scopes/,
    authorize({ scope: repeat(MAX_SCOPES + 1, granular).join(' ') }),
  ],
  'the same scope again and again': [
    /100 scopes/,
    authorize({ scope: repeat(300, () => 'patient/Patient.rs').join(' ') }),
  ],
  'characters of scope': [/8000 characters/, authorize({ scope: 'x'.repeat(MAX_SCOPE_LIST_CHARACTERS + 1) })],
  'search parameters of a scope': [
    /6 search parameters/,
    authorize({
      scope: `patient/Observation.rs?${repeat(MAX_SCOPE_PARAMETERS + 1, at => `p${at}=x`).join('&')}`,
    }),
  ],
  'search parameters of combined scopes': [
    /50 search parameters/,
    authorize({ scope: repeat(26, at => `patient/Observation.rs?code=${at}&status=s${at}`).join(' ') }),
  ],
  ...Object.fromEntries(
    (['state', 'nonce', 'login_hint', 'id_token_hint', 'launch'] as const).map(name => {
      const longest = LIMITS.parameters[name]
      const names = new RegExp(`${name} is longer than ${longest} characters`)
      return [`characters of ${name}`, [names, authorize({ [name]: 'x'.repeat(50_000) })] as const]
    }),
  ),
  'characters of redirect_uri': [
    /redirect_uri/,
    authorize({ redirect_uri: `https://app.example/${'x'.repeat(60_000)}` }),
  ],
  'characters of state at a logout': [
    /4096 characters/,
    form('/oauth2/logout', { state: 'x'.repeat(60_000) }),
  ],
  'scopes of a registration': [
    /100 scopes|8000 characters/,
    register({ scope: repeat(5_000, granular).join(' ') }),
  ],
  'members of a registration': [
    /100 members/,
    registerText(`{${repeat(90_000, at => `"a${at}":1`).join(',')}}`),
  ],
  'URLs of a registration': [/20/, register({ redirect_uris: urls(5_000) })],
  'characters of a URL': [
    /2000 characters/,
    register({ redirect_uris: [`https://a.example/${'x'.repeat(20_000)}`] }),
  ],
  'characters of client_name': [/200 characters/, register({ client_name: 'x'.repeat(20_000) })],
  'keys of a registration': [
    /50 keys|64000 characters|32000 characters/,
    register({
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['client_credentials'],
      jwks: keys(80),
    }),
  ],
  'characters of a client assertion': [
    /8192 characters/,
    form('/oauth2/token', {
      grant_type: 'client_credentials',
      client_assertion: `${'a'.repeat(30_000)}.${'b'.repeat(20_000)}.c`,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    }),
  ],
  'characters of a search in the portal': [/200 characters/, page(`/portal?search=${'x'.repeat(14_000)}`)],
  'words of a search in the portal': [
    /20 words/,
    page(`/portal?search=${repeat(5_000, () => 'x').join('+')}`),
  ],
}

/** What is refused, or not found, for another reason than its size. */
export const ANSWERED: Cases = {
  'parameters of an authorization request': form(
    '/oauth2/authorize',
    repeat(8_000, at => `p${at}=x`).join('&'),
  ),
  'parameters of a token request': form('/oauth2/token', repeat(8_000, at => `p${at}=x`).join('&')),
  'scopes of a token request': form(
    '/oauth2/token',
    `grant_type=client_credentials&scope=${repeat(5_000, () => 'system/*.rs').join('+')}`,
  ),
  'a long refresh token': form('/oauth2/token', {
    grant_type: 'refresh_token',
    refresh_token: 'a'.repeat(60_000),
    client_id: 'x',
  }),
  'a long code': form('/oauth2/token', {
    grant_type: 'authorization_code',
    code: 'a'.repeat(60_000),
    client_id: 'x',
  }),
  'a long token to introspect': form('/oauth2/introspect', { token: 'a.'.repeat(30_000) }),
  'a long token to revoke': form('/oauth2/revoke', { client_id: 'x', token: 'a.'.repeat(30_000) }),
  'a long access token at userinfo': onAuth('/oauth2/userinfo', {
    authorization: `Bearer ${'a'.repeat(14_000)}`,
  }),
  'a long username': form('/login', { username: 'x'.repeat(60_000), password: 'x' }),
  'a long password': form('/login', { username: 'x', password: 'x'.repeat(60_000) }),
  'boxes of a consent': form('/oauth2/consent', repeat(6_000, at => `scope=${at}`).join('&')),
  'choices of a picker': form('/oauth2/pick', repeat(6_000, at => `patientId=${at}`).join('&')),
  'a launch with a long context': form('/portal/launch', {
    patientId: 'grown',
    fhirContext: 'x/y\n'.repeat(15_000),
  }),
  'contacts of a registration': register({ contacts: repeat(5_000, at => `a${at}@b.example`) }),
  'a launch of a record system': form('/launch-contexts', 'x'.repeat(60_000)),
  'audit records of another server': form('/audit-records', 'x'.repeat(60_000)),
  'an app whose access is removed': form('/manage/remove', { client: 'x'.repeat(60_000) }),
  'filters of the activity page': page(`/activity?patient=${'x'.repeat(7_000)}&app=${'x'.repeat(6_000)}`),
  'cookies of the portal': onAuth('/portal', { cookie: repeat(1_400, at => `a${at}=b`).join('; ') }),
}
