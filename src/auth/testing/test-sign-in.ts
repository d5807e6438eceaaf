import type { LightMyRequestResponse } from 'fastify'
import { HOSPITAL_CLIENT, type Hospital } from '../../../test/support/hospital.ts'
import type { LoginProvider, OidcProvider } from '../../config/index.ts'
import type { Resource } from '../../fhir/index.ts'
import type { Store } from '../../store/index.ts'
import { TestAuthServer, type TestAuthServerOptions } from './test-auth-server.ts'
import type { TestBrowser } from './test-browser.ts'

/** The settings of a provider, with the given changes. */
export function makeProvider(
  hospital: Pick<Hospital, 'issuer'>,
  changes: Partial<OidcProvider> = {},
): OidcProvider {
  return {
    kind: 'oidc',
    id: 'hospital',
    name: 'Hospital account',
    issuer: hospital.issuer,
    clientId: HOSPITAL_CLIENT.id,
    clientSecret: HOSPITAL_CLIENT.secret,
    clientSecretFile: undefined,
    clientKeyFile: undefined,
    scopes: 'openid profile',
    usernameClaim: 'preferred_username',
    displayNameClaim: 'name',
    fhirUser: { kind: 'claim', claim: 'fhirUser' },
    allow: undefined,
    admin: undefined,
    users: 'clinicians',
    acrValues: [],
    maxAge: undefined,
    provision: true,
    ...changes,
  }
}

export const PRACTITIONERS: readonly Resource[] = ['byron', 'lovelace'].map(id => ({
  resourceType: 'Practitioner',
  id,
  identifier: [{ system: 'urn:x', value: `e-${id}` }],
}))

/** An auth server that has these providers and real time. */
export async function openSignInServer(
  store: Store,
  providers: readonly LoginProvider[],
  options: TestAuthServerOptions = {},
): Promise<TestAuthServer> {
  const settings = {
    login: { order: [], passwords: true, secondFactor: 'none' as const, providers },
    ...options.settings,
  }
  const auth = await TestAuthServer.open(store, { resources: PRACTITIONERS, ...options, settings })
  auth.time.now = Date.now()
  return auth
}

/** Starts a sign-in with a provider, and returns the URL to which the browser is redirected. */
export async function startSignIn(browser: TestBrowser, path = '/login/providers/hospital'): Promise<string> {
  const { headers, statusCode, body } = await browser.get(path)
  if (headers.location === undefined) throw new Error(`Not redirected: ${statusCode} ${body}`)
  return headers.location
}

/** Signs a user in from the start to the response of the callback. */
export async function signIn(
  browser: TestBrowser,
  hospital: Hospital,
  user: string,
  path?: string,
): Promise<LightMyRequestResponse> {
  return browser.get(await hospital.authorize(await startSignIn(browser, path), user))
}

/** The status, and the target of a redirect or the code of an error page. */
export function describeSignIn({ statusCode, headers, body }: LightMyRequestResponse): string {
  const code = /<dt>Error<\/dt><dd><code>([^<]*)<\/code>/.exec(body)?.[1]
  return `${statusCode} ${headers.location ?? code}`
}
