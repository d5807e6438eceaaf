import { formatExact, isRecord, parseExact } from '../../../fhir/index.ts'
import type { Repository } from '../repository/repository.ts'

/** What became of the resources that were sent to another server. */
export interface SentReport {
  readonly created: number
  readonly updated: number
  readonly refused: readonly { readonly address: string; readonly status: number }[]
}

export interface SendOptions {
  readonly repository: Repository
  /** The FHIR base of the other server. */
  readonly to: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly authorization: () => string | undefined | Promise<string>
  readonly onProgress?: (sent: number, total: number) => void
}

// A server that checks references wants to know what is referred to before what refers to it.
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
  const refused: { address: string; status: number }[] = []
  let [created, updated] = [0, 0]
  for (const type of typesIn(repository))
    for (const batch of batchesOf(repository, type)) {
      const statuses = await sendBatch(options, batch)
      for (const [at, { address }] of batch.entries()) {
        const status = statuses[at] ?? 0
        if (status === 201) created += 1
        else if (status === 200) updated += 1
        else refused.push({ address, status })
      }
      onProgress(created + updated + refused.length, total)
    }
  return { created, updated, refused }
}

/** The server took no batch: nothing of it was written. */
export class BatchRefused extends Error {
  readonly status: number
  constructor(status: number) {
    super(`it answered ${status} to a batch`)
    this.status = status
  }
}

interface Entry {
  readonly address: string
  readonly content: string
}

function typesIn({ database, names }: Repository): readonly string[] {
  const types = database
    .rows('SELECT DISTINCT tid FROM resource WHERE deleted = 0', [])
    .map(([tid]) => names.typeOf(Number(tid)))
  const place = (type: string) => (ORDER.includes(type) ? ORDER.indexOf(type) : ORDER.length)
  return types.toSorted((a, b) => place(a) - place(b) || a.localeCompare(b))
}

function* batchesOf({ database, names }: Repository, type: string): Generator<readonly Entry[]> {
  let after = 0
  for (;;) {
    const rows = database.rows(
      'SELECT rid, id, content FROM resource WHERE tid = ? AND deleted = 0 AND rid > ? ORDER BY rid LIMIT ?',
      [names.typeId(type), after, BATCH],
    )
    if (rows.length === 0) return
    after = Number(rows.at(-1)?.[0])
    yield rows.map(([, id, content]) => ({
      address: `${type}/${id}`,
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
    ({ address, content }) => `{"resource":${content},"request":{"method":"PUT","url":"${address}"}}`,
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
  const answer: unknown = response.ok ? await response.json() : undefined
  if (!isRecord(answer) || !Array.isArray(answer.entry) || answer.entry.length !== batch.length)
    throw new BatchRefused(response.status)
  return answer.entry.map(it => {
    const status: unknown = isRecord(it) && isRecord(it.response) ? it.response.status : undefined
    return Number.parseInt(String(status), 10)
  })
}
