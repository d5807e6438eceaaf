import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type FhirServerOptions, fhirServer } from '../../backends/sqlite/index.ts'
import { createOutcome } from '../../fhir/index.ts'
import { type Access, type Authenticator, fullAccess, type Grant, parseScopes } from '../../smart/index.ts'
import type { Store } from '../../store/index.ts'
import { createAuditor, createFhirAudit, findRecords, type KeptRecord, openEventIds } from '../index.ts'

export const BASE = 'http://fhir.test/fhir'

const callers: Readonly<
  Record<string, { readonly grant: Grant; readonly access: Access; readonly by: string }>
> = {
  juniper: {
    grant: { scopes: [], patient: 'juniper', clientId: 'app', subject: 'c1', tokenId: 'launch-1.token' },
    access: { filterFor: () => [{ patient: 'juniper' }] },
    by: 'patient/*.cruds',
  },
  ashlar: {
    grant: { scopes: [], patient: 'ashlar', clientId: 'other', tokenId: 'launch-2.token' },
    access: { filterFor: () => [{ patient: 'ashlar' }] },
    by: 'patient/*.rs',
  },
  panelled: {
    grant: { scopes: [], clientId: 'app', fhirUser: { type: 'Practitioner', id: 'p2' } },
    access: {
      filterFor: () => [{ panel: { patients: new Set(), organizations: ['north'], careTeams: [] } }],
    },
    by: 'user/*.rs',
  },
  launched: {
    grant: { scopes: parseScopes('user/*.cruds'), patient: 'juniper', clientId: 'app' },
    access: fullAccess,
    by: 'user/*.cruds',
  },
  noted: {
    grant: { scopes: [], clientId: 'app', note: 'For a reason' },
    access: fullAccess,
    by: 'user/*.cruds',
  },
  everyone: {
    grant: { scopes: [], clientId: 'auditor', fhirUser: { type: 'Practitioner', id: 'p1' } },
    access: fullAccess,
    by: 'user/*.cruds',
  },
}

const OUTSIDE = createOutcome('forbidden', 'Not within the granted patient, user or filter.', {
  hint: 'A filter does not filter it',
})

const guard: Authenticator = {
  async authenticate(authorization) {
    const caller = callers[authorization?.replace('Bearer ', '') ?? '']
    const bad = { allowed: false, status: 401, headers: {}, outcome: createOutcome('login', 'Who?') } as const
    if (authorization === 'Bearer juniper-revoked')
      return {
        ...bad,
        why: 'The token is not accepted: it was revoked',
        ...(callers.juniper && { rejectedGrant: callers.juniper.grant }),
      }
    if (!caller) return { ...bad, why: 'The token is not accepted: it is not a JWT' }
    const { grant, access, by } = caller
    return {
      allowed: true,
      grant,
      decide: interaction =>
        'type' in interaction && interaction.type === 'Observation'
          ? {
              allowed: false,
              status: 403,
              headers: {},
              outcome: OUTSIDE,
              by: 'patient/Observation.rs?code=1',
            }
          : { allowed: true, access, by },
    }
  },
}

export interface Bundle {
  readonly total?: number
  readonly entry?: readonly { readonly resource: { readonly id: string; readonly [name: string]: unknown } }[]
  readonly link: readonly { readonly relation: string; readonly url: string }[]
}

type Ask = (line: string, body?: unknown, who?: string) => Promise<{ status: number; body: never }>

export async function openAudited(
  store: Store,
  more: Partial<FhirServerOptions> = {},
): Promise<{ readonly app: FastifyInstance; readonly ask: Ask; readonly flush: () => Promise<void> }> {
  const auditor = createAuditor({ store })
  const audit = createFhirAudit({ auditor, store, fhirBaseUrl: BASE })
  const app = await fhirServer({
    baseUrl: BASE,
    dataFile: ':memory:',
    smartConfiguration: {},
    guard,
    audit,
    ...more,
  })
  const ask: Ask = async (line, body, who = 'everyone') => {
    const [method = '', path = ''] = line.split(/ (.*)/s)
    const reply = await app.inject({
      method: method as 'GET',
      url: path.startsWith('http') ? path.slice('http://fhir.test'.length) : `/fhir/${path}`,
      headers: {
        authorization: `Bearer ${who}`,
        ...(body !== undefined && { 'content-type': 'application/fhir+json' }),
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    return { status: reply.statusCode, body: (reply.body === '' ? undefined : reply.json()) as never }
  }
  return { app, ask, flush: () => auditor.flush() }
}

export const condition = (id: string, patient: string) => ({
  resourceType: 'Condition',
  id,
  subject: { reference: `Patient/${patient}` },
})

async function seed(ask: Ask): Promise<void> {
  for (const id of ['juniper', 'ashlar']) await ask(`PUT Patient/${id}`, { resourceType: 'Patient', id })
}

interface Audited {
  readonly ask: Ask
  recordsBy(options: Parameters<typeof findRecords>[1]): ReturnType<typeof findRecords>
  newest(): Promise<KeptRecord | undefined>
  /** The id of the AuditEvent of a record. */
  findEventId(record: KeptRecord | undefined): Promise<string>
  /** Adds records of today, by default without a patient. */
  addMany(count: number, patients?: readonly string[]): Promise<void>
  /** Stores the counts: the next anonymous request is the first of its kind. */
  flush(): Promise<void>
}

export function describeAudited(title: string, define: (audited: Audited) => void): void {
  eachDatabase((_name, openStore) => {
    describe(title, () => {
      let store: Store
      let server: Awaited<ReturnType<typeof openAudited>>
      before(async () => {
        store = await openStore()
        server = await openAudited(store)
        await seed(server.ask)
      })
      after(() => server.app.close())

      define({
        ask: (...line) => server.ask(...line),
        flush: () => server.flush(),
        recordsBy: options => findRecords(store, options),
        findEventId: async record => (await openEventIds(store)).format(record ?? assert.fail()),
        newest: async () => (await findRecords(store, { limit: 1 }))[0],
        addMany: (count, patients) =>
          store.trail.append(
            Array.from({ length: count }, (_, at) => ({
              at: Date.now() - at,
              server: 'fhir' as const,
              kind: 'fhir',
              allowed: true,
              status: 200,
              ...(patients && { patients: ` ${patients.join(' ')} ` }),
            })),
          ),
      })
    })
  })
}

const ROWS = {
  audit_event: { ofProbe: "kind = 'probe'" },
  audit_intent: { ofProbe: "record = ''" },
} as const

interface Refused {
  readonly table?: keyof typeof ROWS
  readonly client?: string
  /** Also refuses the readiness probe, so that the whole store is unavailable. */
  readonly probe?: boolean
}

/** Makes the database refuse audit rows and accept everything else. Returns a function that ends this. */
export async function refuseRecords(
  store: Store,
  { table = 'audit_event', client, probe = false }: Refused = {},
): Promise<() => Promise<void>> {
  const { db, dialect } = store
  const run = (text: string) => sql.raw(text).execute(db)
  const column = dialect === 'sqlite' ? 'new.' : ''
  const ofOthers = (cell: string) => (client === undefined ? [] : [`coalesce(${cell}, '') <> '${client}'`])
  const unite = (conditions: readonly string[]) => conditions.join(' or ') || 'false'
  const isTaken = unite([
    ...(probe ? [] : [`${column}${ROWS[table].ofProbe}`]),
    ...ofOthers(`${column}client_id`),
  ])
  if (dialect === 'sqlite') {
    const tables = [
      [table, isTaken],
      ...(table === 'audit_event' ? [['audit_waiting', unite(ofOthers("new.record ->> 'client_id'"))]] : []),
    ]
    for (const [refusing, isAccepted] of tables)
      await run(`create trigger refuse_${refusing} before insert on ${refusing} when not (${isAccepted})
                 begin select raise(abort, 'refused'); end`)
    return async () => {
      for (const [refusing] of tables) await run(`drop trigger refuse_${refusing}`)
    }
  }
  await run(`alter table ${table} add constraint refuse_${table} check (${isTaken}) not valid`)
  return async () => void (await run(`alter table ${table} drop constraint refuse_${table}`))
}
