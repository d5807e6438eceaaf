import type { MeasuredServers, Sent } from '../support/measured-servers.ts'
import { repeat } from './texts.ts'

/** A request whose cost is measured. */
export interface Case extends Sent {
  readonly url: string
  /** The server must not hold the body in memory. */
  readonly isStreamed?: boolean
}

export type MakeCase = (servers: MeasuredServers) => Case | Promise<Case>

/** Requests by what was grown in them. */
export type Cases = Readonly<Record<string, MakeCase>>

/** Requests beyond a limit, which the response names. */
export type RefusedCases = Readonly<Record<string, readonly [names: RegExp, make: MakeCase]>>

const JSON_TYPE = { 'content-type': 'application/fhir+json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }

export function get(path: string, headers: Readonly<Record<string, string>> = {}): MakeCase {
  return ({ fhirUrl, backEnd }) => ({ url: fhirUrl + path, headers: { ...backEnd, ...headers } })
}

export function send(
  method: string,
  path: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): MakeCase {
  return ({ fhirUrl, backEnd }) => ({
    url: fhirUrl + path,
    method,
    body,
    headers: { ...backEnd, ...headers },
  })
}

export function post(path: string, body: string): MakeCase {
  return send('POST', path, body)
}

export function search(type: string, form: string): MakeCase {
  return send('POST', `/${type}/_search`, form, FORM_TYPE)
}

export function jsonPatch(operations: readonly string[]): MakeCase {
  return send('PATCH', '/Condition/grown', list(operations), {
    'content-type': 'application/json-patch+json',
  })
}

export function fhirPathPatch(operations: readonly string[]): MakeCase {
  const parameter = operations.map(part => `{"name":"operation","part":${part}}`)
  return send('PATCH', '/Condition/grown', `{"resourceType":"Parameters","parameter":${list(parameter)}}`)
}

export function bundle(type: 'batch' | 'transaction', entries: readonly string[]): MakeCase {
  return post('', `{"resourceType":"Bundle","type":"${type}","entry":${list(entries)}}`)
}

/** A Bundle with one request again and again. */
export function gets(type: 'batch' | 'transaction', url: string, count: number): MakeCase {
  return bundle(
    type,
    repeat(count, () => `{"request":{"method":"GET","url":"${url}"}}`),
  )
}

export function list(items: readonly string[]): string {
  return `[${items.join(',')}]`
}

export function onAuth(path: string, headers: Readonly<Record<string, string>> = {}): MakeCase {
  return ({ authUrl }) => ({ url: authUrl + path, headers })
}

export function form(path: string, fields: string | Readonly<Record<string, string>>): MakeCase {
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  return ({ authUrl }) => ({ url: authUrl + path, method: 'POST', headers: FORM_TYPE, body })
}

/** A request with the cookies of a clinician for whom the demo app was launched. */
export function inSession(path: string, headers: Readonly<Record<string, string>> = {}): MakeCase {
  return async servers => {
    const cookie = [await findSessionCookie(servers), headers.cookie]
      .filter(it => it !== undefined)
      .join('; ')
    return { url: servers.appUrl + path, headers: { ...headers, cookie } }
  }
}

const sessions = new WeakMap<MeasuredServers, string>()

async function findSessionCookie(servers: MeasuredServers): Promise<string> {
  const known = sessions.get(servers)
  if (known !== undefined) return known
  const { user } = servers
  const { status } = await user.launch('grown')
  if (status !== 200) throw new Error(`Cannot launch the demo app: ${status}`)
  sessions.set(servers, user.cookie)
  return user.cookie
}

/** A page for the clinician who has signed in. */
export function page(path: string): MakeCase {
  return ({ authUrl, user }) => ({ url: authUrl + path, headers: { cookie: user.cookie } })
}

export function onApp(path: string, headers: Readonly<Record<string, string>> = {}): MakeCase {
  return ({ appUrl }) => ({ url: appUrl + path, headers })
}
