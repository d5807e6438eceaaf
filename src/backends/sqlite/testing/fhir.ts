import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { createOutcome, type Resource } from '../../../fhir/index.ts'
import type { Access, Authenticator, VersionAccess } from '../../../smart/index.ts'
import { type FhirServerOptions, fhirServer } from '../index.ts'

export const BASE = 'http://fhir.test/fhir'

/** The response to a request outside the grant, as `readIssue` shows it. */
export const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'

/** What came back. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  /** The parsed body, as the resource or Bundle that it should be. */
  readonly body: Body
}

/** The parts of resources, Bundles and outcomes that tests look at. */
export interface Body extends Resource {
  readonly type?: string
  readonly total?: number
  readonly link?: readonly { readonly relation: string; readonly url: string }[]
  readonly entry?: readonly BundleEntry[]
  readonly issue?: readonly {
    readonly severity: string
    readonly code: string
    readonly details: { readonly text: string }
    readonly expression?: readonly string[]
    readonly diagnostics?: string
  }[]
}

interface BundleEntry {
  readonly fullUrl?: string
  readonly resource?: Body
  readonly search?: { readonly mode: string }
  readonly request?: { readonly method: string; readonly url: string }
  readonly response?: {
    readonly status: string
    readonly location?: string
    readonly etag?: string
    readonly lastModified?: string
    readonly outcome?: Body
  }
}

export interface Fhir {
  readonly app: FastifyInstance
  /** `GET Patient/1`: a path below the base, a body that is sent as JSON, headers. */
  (line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>
  /** A client of this server that sends a token. */
  as(token: string): Fhir
  close(): Promise<void>
}

/** Starts a server on data of its own: the embedded one, or one behind the gateway. */
export type StartFhir = (options?: {
  readonly guard?: Authenticator
  readonly versionAccess?: VersionAccess
}) => Promise<Fhir>

/** Starts a server with its own database, in memory by default. */
export async function startFhir(options: Partial<FhirServerOptions> = {}): Promise<Fhir> {
  const app = await fhirServer({ baseUrl: BASE, dataFile: ':memory:', smartConfiguration: {}, ...options })
  return client(app, {})
}

/** Speaks to a server at `BASE`. */
export function client(app: FastifyInstance, standing: Readonly<Record<string, string>> = {}): Fhir {
  const call = async (line: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const [method = '', path = ''] = line.split(/ (.*)/s)
    const reply = await app.inject({
      method: method as 'GET',
      url: path.startsWith('http') ? path.slice(new URL(BASE).origin.length) : `/fhir/${path}`,
      ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
      headers: {
        ...(body !== undefined && { 'content-type': 'application/fhir+json' }),
        ...standing,
        ...headers,
      },
    })
    const parsed = reply.body === '' ? {} : (reply.json() as Body)
    return { status: reply.statusCode, headers: reply.headers, text: reply.body, body: parsed as Body }
  }
  return Object.assign(call, {
    app,
    as: (token: string) => client(app, { ...standing, authorization: `Bearer ${token}` }),
    close: async () => app.close(),
  })
}

/** A guard that knows its callers by name and lets each interaction through within a fixed access. */
export function createAuthenticator(accesses: Readonly<Record<string, Access>>): Authenticator {
  return {
    async authenticate(authorization) {
      const access = accesses[authorization?.replace('Bearer ', '') ?? '']
      if (!access)
        return {
          allowed: false,
          status: 401,
          headers: { 'www-authenticate': 'Bearer' },
          outcome: createOutcome('login', 'Who?'),
        }
      return { allowed: true, decide: () => ({ allowed: true, access }) }
    },
  }
}

/** What one patient's own app may do: everything in that compartment, and reading who is shared. */
export function patientAccess(patient: string, permissions = 'cruds'): Access {
  return {
    filterFor(type, permission) {
      if (!permissions.includes(permission)) return []
      if (type === 'Practitioner' || type === 'Organization')
        return 'rs'.includes(permission) ? 'everything' : []
      return [{ patient }]
    },
  }
}

/** The ids in a searchset, matches first as they came. */
export function readIds(reply: Reply, mode = 'match'): readonly (string | undefined)[] {
  return (reply.body.entry ?? []).filter(it => it.search?.mode === mode).map(it => it.resource?.id)
}

export function readIssue(reply: Reply): string {
  const [issue] = reply.body.issue ?? []
  // HAPI's client shows the diagnostics in the place of the details.
  assert.ok(issue?.diagnostics?.includes(issue.details.text), reply.text)
  return `${reply.status} ${issue?.code}: ${issue?.details.text}`
}

export function readNextLink(reply: Reply): string | undefined {
  return reply.body.link?.find(it => it.relation === 'next')?.url
}

export function patient(id: string, more: object = {}): Resource {
  return { resourceType: 'Patient', id, ...more }
}

export function condition(id: string, of: string, more: object = {}): Resource {
  return {
    resourceType: 'Condition',
    id,
    subject: { reference: `Patient/${of}` },
    code: { text: 'Cough' },
    ...more,
  }
}

export function observation(id: string, of: string, more: object = {}): Resource {
  return {
    resourceType: 'Observation',
    id,
    status: 'final',
    code: { coding: [{ system: 'http://loinc.org', code: '8480-6', display: 'Systolic blood pressure' }] },
    subject: { reference: `Patient/${of}` },
    ...more,
  }
}
