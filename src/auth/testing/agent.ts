import type { LightMyRequestResponse } from 'fastify'
import { readForm } from './read-form.ts'
import { readRedirect, type TestAuthServer } from './test-auth-server.ts'
import type { TestBrowser } from './test-browser.ts'

type Changes = Readonly<Record<string, string | undefined>>

/** An agent as it identifies itself in every request. */
export const AGENT = { client_id: 'scribe', redirect_uri: 'https://scribe.example/callback' } as const

export const MCP = 'http://localhost:8080/fhir/mcp'

/** Registers an agent, as an app is. */
export function addAgent(auth: TestAuthServer, more: Changes = {}): Promise<void> {
  return auth.addClient({
    client_id: AGENT.client_id,
    name: 'Scribe',
    launch_url: null,
    scope: 'openid fhirUser online_access offline_access patient/*.cruds user/*.rs',
    first_party: false,
    ...more,
  })
}

/** An agent's request, whose person picked a patient. */
export async function askAsAgent(
  auth: TestAuthServer,
  browser: TestBrowser,
  different: Changes = {},
): Promise<{
  readonly page: LightMyRequestResponse
  /** Submits the form as it is, with further scopes. */
  readonly allow: (...scopes: readonly string[]) => Promise<LightMyRequestResponse>
}> {
  const request = { ...AGENT, scope: 'patient/Observation.rs', aud: undefined, resource: MCP, ...different }
  let response = await auth.authorize(browser, request)
  if (response.headers.location?.startsWith('/oauth2/pick') === true) {
    const picker = await browser.get(response.headers.location)
    response = await browser.post('/oauth2/pick', `${readForm(picker.body)}&patientId=juniper`)
  }
  const { location = '' } = response.headers
  if (!location.startsWith('/oauth2/consent')) throw new Error(`No consent page: ${location}`)
  const page = await browser.get(location)
  const allow = (...scopes: readonly string[]) => {
    const form = readForm(page.body)
    for (const scope of scopes) form.append('scope', scope)
    return browser.post('/oauth2/consent', `${form}&decision=allow`)
  }
  return { page, allow }
}

/** The token response of an agent that was allowed what it asked for. */
export async function getAgentTokens(
  auth: TestAuthServer,
  browser: TestBrowser,
  different: Changes = {},
): Promise<Readonly<Record<string, string>>> {
  const { allow } = await askAsAgent(auth, browser, different)
  const { code = '' } = readRedirect(await allow())
  return (await auth.exchange(code, AGENT)).json()
}
