import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Selectable } from 'kysely'
import {
  findJwksUrlFault,
  findLaunchUrlFault,
  findLogoUrlFault,
  findRedirectUriFault,
} from '../auth/index.ts'
import { readSettings } from '../config/index.ts'
import { findScopeListFault, parseScope } from '../smart/index.ts'
import { createRandomToken, type Schema, sha256 } from '../store/index.ts'
import {
  type Arguments,
  CommandFailure,
  failMisuse,
  getOptional,
  getSeveral,
  type Io,
  isSet,
} from './command.ts'

async function checkScope(text: string): Promise<string> {
  const { isResourceType } = await import('../fhir/index.ts')
  const scopes = [...new Set(text.split(/\s+/).filter(part => part !== ''))]
  if (scopes.length === 0) throw failMisuse('Empty --scope')
  const fault = findScopeListFault(scopes.join(' '))
  if (fault !== undefined) throw failMisuse(`Cannot use --scope: it ${fault}`)
  for (const scope of scopes) {
    const parsed = parseScope(scope)
    if (parsed === undefined)
      throw failMisuse(`Cannot use scope ${scope}: expected for example patient/Condition.rs`)
    if (parsed.kind === 'resource' && parsed.type !== '*' && !isResourceType(parsed.type)) {
      throw failMisuse(`Cannot use scope ${scope}: FHIR R4 has no resource type ${parsed.type}`)
    }
  }
  return scopes.join(' ')
}

/** Prints the scopes that are not granted as written (AUTHORIZE-7). */
export function noteScopes(scope: string, io: Io): void {
  if (readSettings(io.env, io.cwd).fhir.searchPermission === 's') return
  for (const text of scope.split(' ')) {
    const parsed = parseScope(text)
    if (parsed?.kind !== 'resource' || !parsed.permissions.has('s') || parsed.permissions.has('r')) continue
    const what =
      parsed.permissions.size === 1 ? `${text} is never granted` : `${text} is granted without its s`
    io.stderr.write(
      `Note: ${what}: a search needs r on this server (smart.fhir.search-letter), so request rs\n`,
    )
  }
}

/** True for a client that no user authorizes: only `system/` scopes and the launch API. */
function isForSystemsOnly(scope: string): boolean {
  return scope.split(' ').every(part => part.startsWith('system/') || part === '__launch-contexts.c')
}

export type ClientRow = Selectable<Schema['client']>

export type Described = Partial<Omit<ClientRow, 'client_id' | 'created_at'>>

export const describingOptions = {
  'redirect-uri': { type: 'string', multiple: true },
  'post-logout-redirect-uri': { type: 'string', multiple: true },
  'launch-url': { type: 'string' },
  scope: { type: 'string' },
  public: { type: 'boolean' },
  secret: { type: 'boolean' },
  'jwks-url': { type: 'string' },
  'jwks-file': { type: 'string' },
  'first-party': { type: 'boolean' },
  pkce: { type: 'string' },
  'no-iss-parameter': { type: 'boolean' },
  name: { type: 'string' },
  description: { type: 'string' },
  'logo-url': { type: 'string' },
} as const

export const describingUsage = `\
  --redirect-uri <url>      redirect URI, compared exactly; repeat the option for several. https, http on loopback, or a
                            private-use scheme (com.example.app:/callback). Not needed if all scopes are system/ scopes.
                            For a public app, http://127.0.0.1/… and http://[::1]/… match every port; localhost does not
  --post-logout-redirect-uri <url>
                            URL to which the app may redirect after a logout; repeat the option for several
  --scope "<scopes>"        scopes that the app may request, separated by spaces; also the default if a request has no scope
  --public                  public client: a browser or native app, with PKCE and without a secret
  --secret                  confidential client with a generated secret, which is printed once
  --jwks-url <url>          confidential client with keys (private_key_jwt), published at this URL; not fetched now
  --jwks-file <file>        confidential client with keys, from a file of public keys
  --launch-url <url>        launch URL, to which the portal sends the browser. If it has a fragment (https://…/#/launch),
                            iss and launch are added before the fragment
  --pkce <required|optional>
                            optional: the app may omit code_challenge, as apps written for SMART 1 do (default: required)
  --no-iss-parameter        omit iss (RFC 9207) from authorization responses, for apps that keep the response in the
                            address bar and mistake iss for a launch, such as fhirclient in a new tab. Only apps
                            that use several authorization servers need iss (mix-up attacks)
  --first-party             app of your own organization: its users are not asked for consent
  --name <text>             name shown to users (default: the client id)
  --description <text>      one sentence about the app, shown beside its name
  --logo-url <url>          logo; the user's browser fetches it from this URL`

/** Returns a generated secret only here: the row holds its hash. */
export async function readDescription(
  args: Arguments,
  cwd: string,
): Promise<{ readonly described: Described; readonly secret: string | undefined }> {
  const secret = isSet(args, 'secret') ? createRandomToken() : undefined
  const scope = getOptional(args, 'scope')
  const described: Described = {
    ...one(args, 'name', 'name'),
    ...one(args, 'description', 'description'),
    ...one(args, 'logo-url', 'logo_url', checkLogoUrl),
    ...one(args, 'launch-url', 'launch_url', checkLaunchUrl),
    ...list(args, 'redirect-uri', 'redirect_uris', checkRedirectUri),
    ...list(args, 'post-logout-redirect-uri', 'post_logout_redirect_uris', checkPostLogoutRedirectUri),
    ...(scope === undefined ? {} : { scope: await checkScope(scope) }),
    ...(isSet(args, 'first-party') ? { first_party: true, approved: true } : {}),
    ...readPkce(args),
    ...(isSet(args, 'no-iss-parameter') ? { iss_parameter: false } : {}),
    ...(await readProof(args, cwd, secret)),
  }
  return { described, secret }
}

function readPkce(args: Arguments): Described {
  const pkce = getOptional(args, 'pkce')
  if (pkce === undefined) return {}
  if (pkce !== 'required' && pkce !== 'optional')
    throw failMisuse(`Cannot use --pkce ${pkce}: expected required or optional`)
  return { pkce_required: pkce === 'required' }
}

export function checkWhole(client: Pick<ClientRow, 'scope' | 'redirect_uris' | 'auth_method'>): void {
  if (client.redirect_uris === '[]' && !isForSystemsOnly(client.scope))
    throw failMisuse('Missing --redirect-uri: only a client with system/ scopes alone needs none')
  // SMART backend services: only clients that sign may use system scopes.
  if (client.auth_method !== 'private_key_jwt' && /(^| )(system\/|__launch-contexts\.c)/.test(client.scope))
    throw failMisuse('Cannot use system/ scopes without --jwks-url or --jwks-file: such a client must sign')
}

function one(args: Arguments, option: string, column: keyof Described, check = (text: string) => text) {
  const text = getOptional(args, option)
  return text === undefined ? {} : { [column]: check(text) }
}

function list(args: Arguments, option: string, column: keyof Described, check: (text: string) => string) {
  const texts = [...new Set(getSeveral(args, option).map(check))]
  return texts.length === 0 ? {} : { [column]: JSON.stringify(texts) }
}

async function readProof(args: Arguments, cwd: string, secret: string | undefined): Promise<Described> {
  const url = getOptional(args, 'jwks-url')
  const file = getOptional(args, 'jwks-file')
  if ([isSet(args, 'public'), isSet(args, 'secret'), url, file].filter(Boolean).length > 1)
    throw failMisuse('Expected one of --public, --secret, --jwks-url and --jwks-file')
  const none = { secret_hash: null, jwks: null, jwks_url: null }
  if (isSet(args, 'public')) return { ...none, auth_method: 'none' }
  if (secret !== undefined) return { ...none, auth_method: 'client_secret', secret_hash: sha256(secret) }
  if (url !== undefined) return { ...none, auth_method: 'private_key_jwt', jwks_url: checkJwksUrl(url) }
  if (file === undefined) return {}
  return { ...none, auth_method: 'private_key_jwt', jwks: await readPublicKeys(resolve(cwd, file), file) }
}

async function readPublicKeys(path: string, shownAs: string): Promise<string> {
  const { hasPrivateKey, serializeKeySet } = await import('../auth/index.ts')
  const refuse = (reason: string) => new CommandFailure(`Cannot use --jwks-file ${shownAs}: ${reason}`)
  const document = readJson(path, refuse)
  if (hasPrivateKey(document)) throw refuse('it contains a private or secret key; use public keys only')
  const kept = serializeKeySet(document)
  if (kept === undefined)
    throw refuse('expected a JSON Web Key Set with a key for RS384 (RSA) or ES384 (EC, P-384), and its kid')
  return kept
}

function readJson(path: string, refuse: (reason: string) => CommandFailure): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // A parser's message would quote the file.
    throw refuse(error instanceof SyntaxError ? 'it is not JSON' : 'it cannot be read')
  }
}

function checkRedirectUri(text: string): string {
  return checked('redirect-uri', text, findRedirectUriFault(text))
}

function checkPostLogoutRedirectUri(text: string): string {
  return checked('post-logout-redirect-uri', text, findRedirectUriFault(text))
}

function checkLaunchUrl(text: string): string {
  return checked('launch-url', text, findLaunchUrlFault(text))
}

function checkLogoUrl(text: string): string {
  return checked('logo-url', text, findLogoUrlFault(text))
}

function checkJwksUrl(text: string): string {
  return checked('jwks-url', text, findJwksUrlFault(text))
}

function checked(option: string, text: string, fault: string | undefined): string {
  if (fault === undefined) return text
  // A URL that contains a password is not repeated.
  throw failMisuse(`Cannot use --${option}${text.includes('@') ? '' : ` ${text}`}: ${fault}`)
}
