import { isRecord } from '../../../../core/index.ts'

/** A request to the test upstream, below its base URL. */
export interface HapiRequest {
  readonly method: string
  /** `Patient/1`, without query. */
  readonly path: string
  readonly params: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
  /** The JSON body, as text; the form of a `_search` is among the parameters. */
  readonly body: string
}

export interface HapiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The embedded server without these behaviours. */
export interface StoredServer {
  readonly baseUrl: string
  readonly clock: () => number
  send(request: HapiRequest): Promise<HapiResponse>
  get(path: string, params?: HapiRequest['params']): Promise<HapiResponse>
  /** Runs between the search and the delete of a conditional delete. */
  betweenSteps(): Promise<void>
}

export type Next = (request: HapiRequest) => Promise<HapiResponse>

/** Changes one behaviour of the embedded server. */
export type Behaviour = (stored: StoredServer) => (request: HapiRequest, next: Next) => Promise<HapiResponse>

/** A refusal in the format of HAPI. */
export function refuse(status: number, code: string, text: string): HapiResponse {
  const issue = [{ severity: 'error', code: 'processing', diagnostics: `HAPI-${code}: ${text}` }]
  return respond(status, { resourceType: 'OperationOutcome', issue })
}

export function respond(
  status: number,
  resource: object,
  headers: HapiResponse['headers'] = {},
): HapiResponse {
  const type = { 'content-type': 'application/fhir+json;charset=UTF-8' }
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(resource) }
}

export function parseBody(text: string): Readonly<Record<string, unknown>> {
  const body: unknown = text === '' ? {} : JSON.parse(text)
  return isRecord(body) ? body : {}
}

export interface HapiEntry {
  readonly fullUrl?: string
  readonly resource?: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, string>>
  readonly response?: Readonly<Record<string, string>>
}

export function isTransaction({ method, path, body }: HapiRequest): boolean {
  return method === 'POST' && path === '' && parseBody(body).type === 'transaction'
}

export function listEntries(bundle: Readonly<Record<string, unknown>>): readonly HapiEntry[] {
  return Array.isArray(bundle.entry) ? bundle.entry : []
}

export function isSearch({ method, path }: HapiRequest): boolean {
  return (
    (method === 'GET' && !path.split('/').at(-1)?.startsWith('_') && /^[A-Z][A-Za-z]*$/.test(path)) ||
    (method === 'POST' && path.endsWith('/_search'))
  )
}

export function findType({ path }: HapiRequest): string {
  return path.split('/')[0] ?? ''
}

export function isUpdate({ method, path }: HapiRequest): boolean {
  return method === 'PUT' && path.includes('/')
}
