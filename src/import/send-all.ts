import type { Repository } from '../backends/sqlite/index.ts'
import { type Failed, fail, isFailure, isRecord, parseJson, toRecord, toRecords } from '../core/index.ts'
import { formatExact, parseExact } from '../fhir/index.ts'
import { type ImportGroup, orderByReference } from './order.ts'

export interface RefusedImport {
  /** `Type/id`. */
  readonly reference: string
  readonly status: number
  /** The server's own reason. */
  readonly reason: string
}

export interface SentReport {
  readonly created: number
  readonly updated: number
  readonly unchanged: number
  readonly refused: readonly RefusedImport[]
}

export interface ImportOptions {
  readonly repository: Repository
  /** The FHIR base URL of the other server. */
  readonly to: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly authorization: () => string | undefined | Promise<string>
  readonly onProgress?: (sent: number, total: number) => void
}

/** The server refused a whole batch: nothing of it was written. */
export interface BatchRefused extends Failed {
  readonly status: number
  readonly text: string
}

/** Resources of a batch or transaction. */
const BATCH = 100
const CONNECTIONS = 4

type Result = 'created' | 'updated' | 'unchanged' | RefusedImport

interface Stored {
  readonly rid: number
  readonly reference: string
}

/**
 * Sends all resources of a repository to another FHIR server, each under its own id. A server that checks references needs
 * the resource that is referred to first, and resources that refer to each other in one transaction. Refused resources
 * are sent again while that helps.
 */
export async function sendAll(options: ImportOptions): Promise<SentReport | BatchRefused> {
  const { repository, onProgress = () => {} } = options
  const { stored, references } = readReferences(options)
  const results: Result[] = []
  let sent = 0
  const send = (groups: readonly ImportGroup[]) =>
    inParallel(planBatches(groups), async batch => {
      const entries = batch.members.map(at => prepareEntry(repository, stored[at] ?? NONE, options.to))
      const found = await sendEntries(options, entries, batch.isCircle ? 'transaction' : 'batch')
      if (isFailure(found)) return found
      for (const [at, member] of batch.members.entries()) results[member] = found[at] ?? 'updated'
      sent += batch.members.length
      onProgress(Math.min(sent, stored.length), stored.length)
      return undefined
    })
  const steps = orderByReference(references)
  const sendGroupsWith = async (isSent: (member: number) => boolean) => {
    for (const groups of steps) {
      const failure = await send(groups.filter(({ members }) => members.some(isSent)))
      if (failure) return failure
    }
    return undefined
  }
  let failure = await sendGroupsWith(() => true)
  for (
    let before = Infinity, refused = countRefused(results);
    !failure && 0 < refused && refused < before;
  ) {
    failure = await sendGroupsWith(member => isRefused(results[member]))
    before = refused
    refused = countRefused(results)
  }
  return failure ?? toReport(results)
}

const NONE: Stored = { rid: 0, reference: '' }

function isRefused(result: Result | undefined): result is RefusedImport {
  return typeof result === 'object'
}

function countRefused(results: readonly Result[]): number {
  return results.filter(isRefused).length
}

function toReport(results: readonly Result[]): SentReport {
  const count = (result: Result) => results.filter(it => it === result).length
  return {
    created: count('created'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    refused: results.filter(isRefused),
  }
}

const REFERENCE = /"reference"\s*:\s*"([^"#?]+)"/g

/** All resources, and for each the numbers of those that it refers to. */
function readReferences({ repository: { database, names }, to }: ImportOptions): {
  readonly stored: readonly Stored[]
  readonly references: readonly (readonly number[])[]
} {
  const rows = database.rows('SELECT rid, tid, id FROM resource WHERE deleted = 0 ORDER BY tid, rid', [])
  const stored = rows.map(([rid, tid, id]) => ({
    rid: Number(rid),
    reference: `${names.typeOf(Number(tid))}/${id}`,
  }))
  const numbers = new Map(stored.map(({ reference }, at) => [reference, at]))
  const references = stored.map(({ rid }) => {
    const texts = readStored(database, rid).matchAll(REFERENCE)
    const targets = texts.map(([, text = '']) => numbers.get(toTarget(text, to)))
    return [...new Set(targets.filter(it => it !== undefined))]
  })
  return { stored, references }
}

function readStored(database: Repository['database'], rid: number): string {
  return String(database.rows('SELECT content FROM resource WHERE rid = ?', [rid])[0]?.[0])
}

function toTarget(reference: string, to: string): string {
  const [target = ''] = toRelative(reference, to).split('/_history/')
  return target
}

function toRelative(reference: string, to: string): string {
  return reference.startsWith(`${to}/`) ? reference.slice(to.length + 1) : reference
}

/** A circle is a transaction of its own; other resources are sent in batches. */
function planBatches(groups: readonly ImportGroup[]): readonly ImportGroup[] {
  const circles = groups.filter(it => it.isCircle)
  const others = groups.filter(it => !it.isCircle)
  const members = others.flatMap(it => it.members).toSorted((a, b) => a - b)
  const batches = Array.from({ length: Math.ceil(members.length / BATCH) }, (_, at) => ({
    members: members.slice(at * BATCH, (at + 1) * BATCH),
    isCircle: false,
  }))
  return [...batches, ...circles]
}

/** Does the work for all items, up to the first failure. */
async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<BatchRefused | undefined>,
): Promise<BatchRefused | undefined> {
  const waiting = items.values()
  let first: BatchRefused | undefined
  const worker = async () => {
    for (const item of waiting) {
      const failure = await work(item)
      first ??= failure
      if (first) return
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return first
}

interface Entry {
  readonly reference: string
  readonly content: string
}

/** Without version, because the other server numbers its own, and with relative references, because HAPI accepts no others. */
function prepareEntry({ database }: Repository, { rid, reference }: Stored, to: string): Entry {
  const text = readStored(database, rid).replaceAll(
    REFERENCE,
    (_, target: string) => `"reference":"${toRelative(target, to)}"`,
  )
  const { meta, ...resource } = parseExact(text) as Record<string, unknown>
  const { versionId: _, lastUpdated: __, ...kept } = toRecord(meta)
  const content = formatExact(Object.keys(kept).length > 0 ? { ...resource, meta: kept } : resource)
  return { reference, content }
}

async function sendEntries(
  options: ImportOptions,
  entries: readonly Entry[],
  type: 'batch' | 'transaction',
): Promise<readonly Result[] | BatchRefused> {
  const versions = await fetchVersions(options, entries)
  const requests = entries.map(
    ({ reference, content }) => `{"resource":${content},"request":{"method":"PUT","url":"${reference}"}}`,
  )
  const response = await post(options, '', {
    'content-type': 'application/fhir+json; charset=utf-8',
    prefer: 'return=minimal',
    body: `{"resourceType":"Bundle","type":"${type}","entry":[${requests.join(',')}]}`,
  })
  const { status } = response
  const answer = await readJson(response)
  const responses =
    response.ok && isRecord(answer) ? toRecords(answer.entry).map(it => toRecord(it.response)) : []
  if (responses.length === entries.length)
    return entries.map(({ reference }, at) =>
      toResult(reference, responses[at] ?? {}, versions.get(reference)),
    )
  const reason = findReason(answer)
  if (type === 'batch' || !isRefusal(status))
    return fail({ status, text: `it answered ${status} to a batch${reason && `: ${reason}`}` })
  return entries.map(({ reference }) => ({ reference, status, reason }))
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 403
}

function toResult(reference: string, response: Json, before: string | undefined): Result {
  const status = Number.parseInt(String(response.status), 10)
  if (status === 201) return 'created'
  if (status !== 200) return { reference, status, reason: findReason(response.outcome) }
  return before !== undefined && readVersion(response.etag) === before ? 'unchanged' : 'updated'
}

/** In Bundles, HAPI writes the version alone. */
function readVersion(etag: unknown): string | undefined {
  return /^(?:W\/)?"?([^"]*)"?$/.exec(String(etag))?.[1]
}

/** The versions that the server has before it is changed. A server without such searches tells none. */
async function fetchVersions(
  options: ImportOptions,
  entries: readonly Entry[],
): Promise<ReadonlyMap<string, string>> {
  const byType = Map.groupBy(entries, ({ reference }) => reference.split('/')[0] ?? '')
  const found = [...byType].map(async ([type, list]) => {
    const ids = list.map(({ reference }) => reference.slice(type.length + 1)).join(',')
    const query = new URLSearchParams({ _id: ids, _elements: 'id,meta', _count: String(list.length) })
    const response = await post(options, `/${type}/_search`, {
      'content-type': 'application/x-www-form-urlencoded',
      'cache-control': 'no-cache',
      body: query.toString(),
    })
    const bundle = await readJson(response)
    return isRecord(bundle) ? toRecords(bundle.entry).map(it => toRecord(it.resource)) : []
  })
  const resources = (await Promise.all(found)).flat()
  return new Map(resources.map(it => [`${it.resourceType}/${it.id}`, String(toRecord(it.meta).versionId)]))
}

async function post(
  { to, fetch, authorization }: ImportOptions,
  path: string,
  { body, ...headers }: { readonly body: string } & Readonly<Record<string, string>>,
): Promise<Response> {
  const header = await authorization()
  return fetch(to + path, {
    method: 'POST',
    redirect: 'error',
    headers: {
      accept: 'application/fhir+json',
      ...headers,
      ...(header !== undefined && { authorization: header }),
    },
    body,
  })
}

type Json = Readonly<Record<string, unknown>>

async function readJson(response: Response): Promise<unknown> {
  return parseJson(await response.text())
}

/** The texts of an OperationOutcome. */
export function findReason(outcome: unknown): string {
  const issues = isRecord(outcome) ? toRecords(outcome.issue) : []
  const texts = issues.map(it => it.diagnostics ?? toRecord(it.details).text ?? it.code)
  return [...new Set(texts.map(String))].join('; ')
}
