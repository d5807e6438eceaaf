import { formatExact, isRecord, parseExact } from '../../../fhir/index.ts'
import type { Repository } from '../repository/repository.ts'

/** The results of sending resources to another server. */
export interface SentReport {
  readonly created: number
  readonly updated: number
  readonly refused: readonly { readonly reference: string; readonly status: number }[]
}

export interface SendOptions {
  readonly repository: Repository
  /** The FHIR base of the other server. */
  readonly to: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly authorization: () => string | undefined | Promise<string>
  readonly onProgress?: (sent: number, total: number) => void
}

// A server that checks references needs the referenced resources first.
const FIRST = [
  'Organization',
  'Location',
  'Practitioner',
  'PractitionerRole',
  'Medication',
  'Device',
  'Patient',
]
const THEN = ['RelatedPerson', 'Coverage', 'CareTeam', 'EpisodeOfCare', 'Encounter', 'Condition', 'Goal']
const ORDER = [...FIRST, ...THEN]

const BATCH = 100

/** Sends all resources of a repository to another FHIR server, in batches, each resource under its own id. */
export async function sendAll(options: SendOptions): Promise<SentReport> {
  const { repository, onProgress = () => {} } = options
  const total = repository.count()
  const refused: { reference: string; status: number }[] = []
  let [created, updated] = [0, 0]
  for (const type of listTypes(repository))
    for (const batch of readBatches(repository, type)) {
      const statuses = await sendBatch(options, batch)
      for (const [at, { reference }] of batch.entries()) {
        const status = statuses[at] ?? 0
        if (status === 201) created += 1
        else if (status === 200) updated += 1
        else refused.push({ reference, status })
      }
      onProgress(created + updated + refused.length, total)
    }
  return { created, updated, refused }
}

/** The server refused a whole batch and wrote none of it. */
export class BatchRefused extends Error {
  readonly status: number
  constructor(status: number) {
    super(`it answered ${status} to a batch`)
    this.status = status
  }
}

interface Entry {
  readonly reference: string
  readonly content: string
}

function listTypes({ database, names }: Repository): readonly string[] {
  const types = database
    .rows('SELECT DISTINCT tid FROM resource WHERE deleted = 0', [])
    .map(([tid]) => names.typeOf(Number(tid)))
  const position = (type: string) => (ORDER.includes(type) ? ORDER.indexOf(type) : ORDER.length)
  return types.toSorted((a, b) => position(a) - position(b) || a.localeCompare(b))
}

function* readBatches({ database, names }: Repository, type: string): Generator<readonly Entry[]> {
  let after = 0
  for (;;) {
    const rows = database.rows(
      'SELECT rid, id, content FROM resource WHERE tid = ? AND deleted = 0 AND rid > ? ORDER BY rid LIMIT ?',
      [names.typeId(type), after, BATCH],
    )
    if (rows.length === 0) return
    after = Number(rows.at(-1)?.[0])
    yield rows.map(([, id, content]) => ({
      reference: `${type}/${id}`,
      content: withoutVersion(String(content)),
    }))
  }
}

/** The other server numbers its own versions. */
function withoutVersion(content: string): string {
  const { meta, ...resource } = parseExact(content) as Record<string, unknown>
  const { versionId: _, lastUpdated: __, ...kept } = isRecord(meta) ? meta : {}
  return formatExact(Object.keys(kept).length > 0 ? { ...resource, meta: kept } : resource)
}

async function sendBatch(
  { to, fetch, authorization }: SendOptions,
  batch: readonly Entry[],
): Promise<readonly number[]> {
  const header = await authorization()
  const entry = batch.map(
    ({ reference, content }) => `{"resource":${content},"request":{"method":"PUT","url":"${reference}"}}`,
  )
  const response = await fetch(to, {
    method: 'POST',
    redirect: 'error',
    headers: {
      accept: 'application/fhir+json',
      'content-type': 'application/fhir+json; charset=utf-8',
      prefer: 'return=minimal',
      ...(header !== undefined && { authorization: header }),
    },
    body: `{"resourceType":"Bundle","type":"batch","entry":[${entry.join(',')}]}`,
  })
  const body: unknown = response.ok ? await response.json() : undefined
  if (!isRecord(body) || !Array.isArray(body.entry) || body.entry.length !== batch.length)
    throw new BatchRefused(response.status)
  return body.entry.map(it => {
    const status: unknown = isRecord(it) && isRecord(it.response) ? it.response.status : undefined
    return Number.parseInt(String(status), 10)
  })
}
