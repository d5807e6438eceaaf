import assert from 'node:assert/strict'
import { listRoutes } from '../../src/web/http/index.ts'
import { BODY_BYTES, FORM_BYTES } from '../../src/web/http/limits.ts'
import { HttpUser } from '../support/http-user.ts'
import type { MeasuredServers } from '../support/measured-servers.ts'
import { startStack } from '../support/stack.ts'
import type { Case, Cases, MakeCase } from './cases.ts'
import { repeat } from './texts.ts'

/** Requests of the auth and the app server that every route gets: a new route has cases without being named here. */
export async function listRouteCases(): Promise<Cases> {
  const stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '0' } })
  try {
    const cases = (['auth', 'app'] as const).flatMap(server =>
      listRoutes(stack[server]).flatMap(({ method, path }) =>
        Object.entries(method === 'GET' ? QUERIES : BODIES).map(
          ([grown, make]) =>
            [`${grown} of ${method} ${path} on the ${server} server`, make(server, method, path)] as const,
        ),
      ),
    )
    return Object.fromEntries(cases)
  } finally {
    await stack.close()
  }
}

type Server = 'auth' | 'app'
type MakeRouteCase = (server: Server, method: string, path: string) => MakeCase

/** Node accepts 16 kB of headers. */
const QUERY_CHARACTERS = 12_000

const PAIRS = repeat(10_000, at => `a${at}=x`).join('&')
const MEMBERS = `{${repeat(99_000, at => `"a${at}":1`).join(',')}}`.slice(0, BODY_BYTES)

const QUERIES: Readonly<Record<string, MakeRouteCase>> = {
  parameters: (server, method, path) => send(server, method, `${path}?${PAIRS.slice(0, QUERY_CHARACTERS)}`),
}

const BODIES: Readonly<Record<string, MakeRouteCase>> = {
  'fields of a form': (server, method, path) =>
    send(server, method, path, 'application/x-www-form-urlencoded', PAIRS.slice(0, FORM_BYTES - 1)),
  'members of a body': (server, method, path) => send(server, method, path, 'application/json', MEMBERS),
}

function send(server: Server, method: string, path: string, type?: string, body?: string): MakeCase {
  return async (servers): Promise<Case> => ({
    url: servers[`${server}Url`] + path.replace('*', 'x').replace(/:\w+/g, 'seeded-1'),
    method,
    headers: {
      ...(type !== undefined && { 'content-type': type }),
      // Node sends no length with the body of a DELETE.
      ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
      // These would end the login for the other cases.
      ...(!/logout|sign-ins/.test(path) && { cookie: await findCookie(servers, 'admin') }),
    },
    ...(body !== undefined && { body }),
  })
}

const cookies = new WeakMap<MeasuredServers, Map<string, string>>()

/** The cookie of a sample account. An administrator may use every page. */
export async function findCookie(servers: MeasuredServers, username: string): Promise<string> {
  const ofServers = cookies.get(servers) ?? new Map<string, string>()
  cookies.set(servers, ofServers)
  const known = ofServers.get(username)
  if (known !== undefined) return known
  const user = new HttpUser({
    settings: { issuerUrl: servers.authUrl, appUrl: servers.appUrl },
    user: { username, password: 'sallyport', name: username },
  })
  await user.signIn()
  // A request without a login would measure the redirect to the sign-in page.
  assert.match(user.cookie, /sallyport-login=/)
  ofServers.set(username, user.cookie)
  return user.cookie
}

/** A page of an administrator. */
export function adminPage(path: string): MakeCase {
  return async servers => ({
    url: servers.authUrl + path,
    headers: { cookie: await findCookie(servers, 'admin') },
  })
}

/** A page of a patient. */
export function patientPage(path: string): MakeCase {
  return async servers => ({
    url: servers.authUrl + path,
    headers: { cookie: await findCookie(servers, 'alba') },
  })
}
