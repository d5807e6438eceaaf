import { Readable } from 'node:stream'
import { isFailure } from '../../core/index.ts'
import { failFor, isResource, isResourceType, type Resource } from '../../fhir/index.ts'
import { seesAll } from '../../smart/index.ts'
import type { ExportRelay, ExportRow } from '../backend.ts'
import { buildUrl } from '../bundle-json.ts'
import type { Context } from '../context.ts'
import type { ExportJob, ExportLevel, ExportOwner, Exports } from '../exports.ts'
import { type FhirRequest, getPath, type Operation } from '../request.ts'
import { type Failure, type FhirResponse, failBroken } from '../response.ts'
import { formatFileUrl, formatManifestUrl, openManifest } from './file-url.ts'
import { EXPORT_LINE_CHARACTERS } from './limits.ts'
import { LineWriter } from './line.ts'

/** The upstream's own export, if it may relay it to this caller: its files are not limited to a grant. */
export function findRelay({ session }: Context, { access }: FhirRequest): ExportRelay | undefined {
  return seesAll(access) ? session.relay : undefined
}

/** Starts the upstream's export. Returns the id of ours. */
export async function startRelayed(
  { baseUrl, clock }: Context,
  { jobs, lifetimeMs }: Exports,
  relay: ExportRelay,
  request: FhirRequest<Operation>,
  { level, owner }: { readonly level: ExportLevel; readonly owner: ExportOwner },
): Promise<string | Failure> {
  const relayed = await relay.start(request)
  if (isFailure(relayed)) return relayed
  const { interaction } = request
  const types = interaction.params
    .filter(([name]) => name === '_type')
    .flatMap(([, value]) => value.split(','))
    .filter(isResourceType)
  const now = clock()
  return jobs.add(
    {
      level,
      relayed,
      url: buildUrl(baseUrl + getPath(interaction), interaction.params),
      moment: { time: now, mark: 0 },
      types,
      filters: [],
      elements: [],
      notes: [],
    },
    owner,
    now + lifetimeMs,
  )
}

/** The status of the upstream's export. The URLs of its manifest, which anybody could open, become our own. */
export async function showRelayed(
  { baseUrl, exports }: Context,
  relay: ExportRelay,
  job: ExportJob,
  { interaction: { params } }: FhirRequest<Operation>,
  status: string,
): Promise<FhirResponse | Failure | undefined> {
  const sealed = params.find(([name]) => name === 'manifest')?.[1]
  const page = sealed === undefined ? { job: job.id, place: status } : openManifest(exports, sealed)
  if (page?.job !== job.id || page.place === undefined) return undefined
  const found = await relay.askStatus(page.place)
  if (isFailure(found)) return found
  const { isReady, headers, manifest } = found
  if (!manifest) return { status: 202, headers }
  const seal = (url: string, isManifest: boolean) => {
    const place = relay.findPlace(url)
    if (place === undefined) return undefined
    const content = { job: job.id, place }
    return isManifest
      ? formatManifestUrl(baseUrl, exports, content)
      : formatFileUrl(baseUrl, exports, content)
  }
  const shown = sealManifest({ ...manifest, request: undefined }, seal)
  if (!shown) return failBroken('the manifest of its export has a URL that is not below its base URL')
  if (isReady && job.plan.next) {
    const count = listOf(manifest.output).length + listOf(manifest.deleted).length
    await exports?.jobs.update(job, { files: [], relayed: count }, 0)
  }
  const theirs = Date.parse(headers.expires ?? '')
  const expires = Number.isNaN(theirs) ? job.expiresAt : Math.min(theirs, job.expiresAt)
  return {
    status: isReady ? 200 : 202,
    headers: {
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      ...(isReady && { expires: new Date(expires).toUTCString() }),
    },
    body: JSON.stringify({ ...shown, request: job.order.url, requiresAccessToken: true }),
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

const ABSOLUTE = /^https?:\/\/\S*$/i
const URL_MEMBERS: ReadonlySet<string> = new Set(['url', 'continuesInFile'])

/** The manifest with sealed URLs, wherever it has one. Undefined if one of them cannot be sealed. */
function sealManifest(
  manifest: object,
  seal: (url: string, isManifest: boolean) => string | undefined,
): object | undefined {
  let isWhole = true
  const fail = () => {
    isWhole = false
  }
  const shown = JSON.parse(JSON.stringify(manifest), function (this: object, key: string, value: unknown) {
    if (key.includes('://')) return fail()
    if (typeof value !== 'string' || !(URL_MEMBERS.has(key) || value.includes('://'))) return value
    // Only these may be relative.
    if (!URL_MEMBERS.has(key) && !ABSOLUTE.test(value)) return fail()
    return seal(value, Object.hasOwn(this, 'relation')) ?? fail()
  })
  return isWhole ? shown : undefined
}

interface PassedFile {
  readonly sent: { add(row: ExportRow): void; isWhole: boolean }
  /** Throws if the file must not be sent any longer. */
  checkEnd(): Promise<void>
}

/** The lines of the upstream's file. */
export async function openRelayed(
  context: Context,
  request: FhirRequest,
  place: string | undefined,
  file: PassedFile,
): Promise<Readable | Failure> {
  const relay = findRelay(context, request)
  if (!relay || place === undefined) return failFor('export-unknown')
  const body = await relay.openFile(place)
  if (isFailure(body)) return body
  // The reader of the lines gets the error, if there is one by then.
  body.on('error', () => undefined)
  const lines = passLines(body, context.baseUrl, request, file)
  return Readable.from(lines, { objectMode: false }).once('close', () => body.destroy())
}

/** Throws if a line is not a resource: the response then breaks off. */
async function* passLines(
  body: Readable,
  baseUrl: string,
  { work }: FhirRequest,
  { sent, checkEnd }: PassedFile,
): AsyncGenerator<Buffer> {
  const lines = new LineWriter(baseUrl)
  let rest = ''
  body.setEncoding('utf8')
  const findLines = (text: string): readonly string[] => {
    rest += text
    // A long line arrives in many parts.
    const found = text.includes('\n') ? rest.split('\n') : [rest]
    rest = found.pop() ?? ''
    if (rest.length > EXPORT_LINE_CHARACTERS) throw failLine('too long')
    return found
  }
  async function* add(texts: readonly string[]) {
    for (const text of texts) {
      if (text.trim() === '') continue
      const resource = parseLine(text)
      sent.add({
        type: resource.resourceType,
        id: String(resource.id ?? ''),
        text,
        parse: () => resource,
      })
      const full = lines.add(text.trim())
      if (full) {
        await checkEnd()
        yield full
      }
      await work.pause()
    }
  }
  for await (const chunk of body) {
    await checkEnd()
    yield* add(findLines(chunk))
  }
  yield* add([rest])
  sent.isWhole = true
  const last = lines.take()
  if (last) yield last
}

function parseLine(text: string): Resource {
  try {
    const resource: unknown = JSON.parse(text)
    if (isResource(resource)) return resource
  } catch {
    // Its message has a part of the line.
  }
  throw failLine('not a resource')
}

function failLine(fault: string): Error {
  return new Error(`Cannot go on with a file of an export: a line of the upstream is ${fault}`)
}
