import { type Fetch, fail, isFailure, isRecord, parseJson, toPlainLine, toRecord } from '../core/index.ts'
import { type LocalSelection, toLine } from '../fhir-api/index.ts'
import { findReason, MAX_LINE_BYTES, splitLines } from '../import/index.ts'
import type { ExportProgress, NotExported } from './export-store.ts'
import type { ExportFiles } from './files.ts'
import type { ManifestItem } from './manifest.ts'

/** The `Authorization` header of a backend service. */
export interface ServiceAuthorization {
  get(): string | undefined | Promise<string>
  /** The server has refused it. */
  forget(): void
}

export interface RemoteExport {
  /** The FHIR base URL of the server, without a trailing slash. */
  readonly base: string
  readonly fetch: Fetch
  readonly authorization: ServiceAuthorization
  readonly files: ExportFiles
  readonly selection: LocalSelection
  readonly signal: AbortSignal
  readonly wait: (ms: number) => Promise<unknown>
  readonly onProgress: (progress: ExportProgress) => void
  /** The server's own words about the time before the files can be downloaded. */
  readonly onPreparing: (text: string) => void
}

export interface RemoteReport {
  readonly resources: number
  /** What the server says that the export lacks. */
  readonly notes: readonly string[]
}

const FHIR_JSON = 'application/fhir+json'

/** Exports from another FHIR server (Bulk Data Access 3.0.0): start, status, files, end. */
export async function exportFrom(options: RemoteExport): Promise<RemoteReport | NotExported> {
  const statusUrl = await start(options)
  if (isFailure(statusUrl)) return statusUrl
  try {
    const manifest = await waitForManifest(options, statusUrl)
    return isFailure(manifest) ? manifest : await downloadAll(options, manifest)
  } finally {
    await end(options, statusUrl)
  }
}

async function start(options: RemoteExport): Promise<string | NotExported> {
  const { base, selection } = options
  const { group, patients, types, since } = selection
  const level = group !== undefined ? `/Group/${encodeURIComponent(group)}` : patients ? '/Patient' : ''
  // An attachment comes with its document.
  const named = types?.filter(type => type !== 'Binary')
  const values = [
    ...(named ? [{ name: '_type', valueString: named.join(',') }] : []),
    ...(since === undefined ? [] : [{ name: '_since', valueInstant: new Date(since).toISOString() }]),
  ]
  const query = values.map(it => `${it.name}=${encodeURIComponent(it.valueString ?? it.valueInstant)}`)
  const url = `${base}${level}/$export`
  const headers = { accept: FHIR_JSON, prefer: 'respond-async' }
  const response = patients
    ? await send(options, url, {
        method: 'POST',
        headers: { ...headers, 'content-type': FHIR_JSON },
        body: JSON.stringify({
          resourceType: 'Parameters',
          parameter: [
            ...values,
            ...patients.map(id => ({
              name: 'patient',
              valueReference: { reference: `Patient/${id}` },
            })),
          ],
        }),
      })
    : await send(options, url + (query.length > 0 ? `?${query.join('&')}` : ''), { headers })
  if (response.status !== 202) return failAnswered(response, 'the start of an export')
  await response.body?.cancel()
  const location = URL.parse(response.headers.get('content-location') ?? '', `${base}/`)
  if (!location) return fail({ text: 'it started the export, but named no status URL' })
  return checkOrigin(options, location) ?? location.href
}

/** The credentials are only for the server that the user has named. */
function checkOrigin({ base }: RemoteExport, { origin }: URL): NotExported | undefined {
  if (origin === new URL(base).origin) return undefined
  return fail({
    text: `it refers to ${origin}, which would get the credentials. If that is the same server, name it with --from`,
  })
}

interface Manifest {
  readonly transactionTime: string
  readonly request: string
  readonly requiresAccessToken: boolean
  readonly output: readonly ManifestItem[]
  readonly error: readonly ManifestItem[]
}

/** Tries after which a status or a file that cannot be read is given up. */
const ATTEMPTS = 4

async function waitForManifest(options: RemoteExport, statusUrl: string): Promise<Manifest | NotExported> {
  let failures = 0
  for (let pause = 1; ; pause = Math.min(pause * 2, 60)) {
    const response = await send(options, statusUrl, { headers: { accept: 'application/json' } }).catch(
      error => {
        if (!(error instanceof TypeError) || ++failures >= ATTEMPTS) throw error
      },
    )
    if (!response) {
      await options.wait(pause * 1000)
      continue
    }
    if (response.status === 200) return readManifest(await readText(response), statusUrl)
    const isUnderWay = response.status === 202 || response.status === 429
    if (!isUnderWay && (response.status < 500 || ++failures >= ATTEMPTS))
      return failAnswered(response, 'a request for the status')
    await response.body?.cancel()
    const progress = response.headers.get('x-progress')
    if (progress) options.onPreparing(toPlainLine(progress).slice(0, 100))
    await options.wait(readPause(response, pause))
  }
}

/** However long the server says. A timer of more than 24 days would end at once. */
const MAX_PAUSE_MS = 60 * 60_000

/** Retry-After, or the pause in seconds that we would choose. */
function readPause({ headers }: Response, seconds: number): number {
  const text = headers.get('retry-after') ?? ''
  const told = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(told) ? seconds * 1000 : Math.min(MAX_PAUSE_MS, Math.max(1000, told))
}

function readManifest(text: string | undefined, statusUrl: string): Manifest | NotExported {
  const found = parseJson(text ?? '')
  const { transactionTime, request, requiresAccessToken, output, error } = toRecord(found)
  if (typeof transactionTime !== 'string' || typeof request !== 'string' || !Array.isArray(output))
    return fail({ text: 'its manifest is not one of Bulk Data Access' })
  return {
    transactionTime,
    request,
    requiresAccessToken: requiresAccessToken !== false,
    output: listItems(output, statusUrl),
    error: listItems(error, statusUrl),
  }
}

function listItems(items: unknown, statusUrl: string): readonly ManifestItem[] {
  const records = Array.isArray(items) ? items.filter(isRecord) : []
  return records.map(({ type, url, count }) => ({
    type: String(type),
    url: URL.parse(String(url), statusUrl)?.href ?? '',
    ...(typeof count === 'number' && { count }),
  }))
}

async function downloadAll(options: RemoteExport, manifest: Manifest): Promise<RemoteReport | NotExported> {
  const { files, onProgress, selection } = options
  const { output, error, transactionTime, request } = manifest
  const counts = output.map(({ count }) => count)
  const total = counts.every(it => it !== undefined) ? counts.reduce((sum, it) => sum + it, 0) : undefined
  const attachments = new Attachments(options)
  const hasAttachments = selection.types?.includes('Binary') !== false
  let resources = 0
  for (const [at, item] of output.entries()) {
    const before = resources
    const failure = await download(options, manifest, item, (text, lines) => {
      files.append(item.type, hasAttachments ? attachments.find(text) : text)
      resources = before + lines
      onProgress({
        read: total === undefined ? at : resources,
        total: total ?? output.length,
        resources,
      })
    })
    if (failure) return failure
    const refused = await attachments.download()
    if (refused) return refused
  }
  const notes: string[] = [...attachments.notes]
  for (const item of error) {
    const failure = await download(options, manifest, item, text => {
      if (notes.length < NOTES) notes.push(readReason(text))
    })
    if (failure) return failure
  }
  options.signal.throwIfAborted()
  return { resources: files.finish({ transactionTime, request }), notes }
}

/** Notes of the server that are shown. */
const NOTES = 20

/** Gets a line, and how many of the file there are with it. */
type TakeLine = (line: string, lines: number) => void

/** Downloads a file. One that breaks off is downloaded again from its beginning. */
async function download(
  options: RemoteExport,
  { requiresAccessToken }: Manifest,
  { type, url, count }: ManifestItem,
  take: TakeLine,
): Promise<NotExported | undefined> {
  const { files } = options
  const address = URL.parse(url)
  if (!address || !isTypeName(type))
    return fail({ text: 'its manifest names a file without a type or a URL' })
  const stranger = requiresAccessToken ? checkOrigin(options, address) : undefined
  if (stranger) return stranger
  const mark = files.mark(type)
  for (let attempt = 1; ; attempt++) {
    const done = await downloadOnce(options, { url, isOpen: !requiresAccessToken, type }, take)
    if (typeof done === 'number' && (count === undefined || count === done)) return undefined
    const failure =
      typeof done === 'number'
        ? fail({ text: `a file of ${type} has ${done} lines instead of ${count}` })
        : done.failure
    if ((typeof done === 'object' && done.isFinal) || attempt === ATTEMPTS) return failure
    files.cut(type, mark)
    await options.wait(typeof done === 'object' ? (done.pause ?? 1000) : 1000)
  }
}

/** The type becomes the name of a file. */
function isTypeName(type: string): boolean {
  return /^[A-Z][A-Za-z]{1,60}$/.test(type)
}

interface Broken {
  readonly failure: NotExported
  readonly isFinal: boolean
  readonly pause?: number
}

/** Returns the number of lines. */
async function downloadOnce(
  options: RemoteExport,
  { url, isOpen, type }: { readonly url: string; readonly isOpen: boolean; readonly type: string },
  take: TakeLine,
): Promise<number | Broken> {
  const headers = { accept: 'application/fhir+ndjson' }
  let lines = 0
  try {
    const response = isOpen
      ? await options.fetch(url, { headers, redirect: 'error', signal: options.signal })
      : await send(options, url, { headers })
    if (response.status !== 200) {
      const isFinal = response.status < 500 && response.status !== 429
      const pause = readPause(response, 2)
      return { failure: await failAnswered(response, `a file of ${type}`), isFinal, pause }
    }
    for await (const line of splitLines(toBuffers(response.body), MAX_LINE_BYTES)) {
      lines++
      const text = line.kind === 'text' ? line.bytes.toString().trim() : ''
      const resource = parseJson(text)
      if (!isRecord(resource) || resource.resourceType !== type)
        return {
          failure: fail({ text: `line ${lines} of a file of ${type} is not such a resource` }),
          isFinal: false,
        }
      take(text, lines)
    }
    return lines
  } catch (error) {
    // The connection was closed before the end of the file. A full disk is not the server's fault.
    if (options.signal.aborted || !(error instanceof TypeError)) throw error
    return { failure: fail({ text: `a file of ${type} broke off after ${lines} lines` }), isFinal: false }
  }
}

async function* toBuffers(body: Response['body']): AsyncGenerator<Buffer> {
  for await (const chunk of body ?? []) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}

/** The Binaries that exported resources name, each once. */
class Attachments {
  readonly notes: string[] = []
  readonly #options: RemoteExport
  readonly #pattern: RegExp
  readonly #known = new Set<string>()
  #waiting: string[] = []

  constructor(options: RemoteExport) {
    this.#options = options
    const base = RegExp.escape(options.base)
    // In JSON the quotation marks of a text are escaped, so that this is a member and not a part of a text.
    this.#pattern = new RegExp(`("url"\\s*:\\s*")(?:${base}/)?Binary/([A-Za-z0-9.-]{1,64})"`, 'g')
  }

  /** The line with relative URLs, as they are when a server is asked for the resource. */
  find(line: string): string {
    if (!line.includes('Binary/')) return line
    return line.replace(this.#pattern, (_, member: string, id: string) => {
      if (!this.#known.has(id)) this.#waiting.push(id)
      this.#known.add(id)
      return `${member}Binary/${id}"`
    })
  }

  async download(): Promise<NotExported | undefined> {
    const waiting = this.#waiting
    this.#waiting = []
    for (const id of waiting) {
      const failure = await this.#downloadOne(id)
      if (failure) return failure
    }
    return undefined
  }

  async #downloadOne(id: string): Promise<NotExported | undefined> {
    const { base, files } = this.#options
    const response = await send(this.#options, `${base}/Binary/${id}`, { headers: { accept: FHIR_JSON } })
    if (response.status >= 500) return failAnswered(response, `Binary/${id}`)
    const text = await readText(response)
    const binary = response.status === 200 ? parseJson(text ?? '') : undefined
    if (isRecord(binary) && binary.resourceType === 'Binary') files.append('Binary', toLine(text ?? ''))
    else if (this.notes.length < NOTES)
      this.notes.push(`Binary/${id}, an attachment, was not exported: the server answered ${response.status}`)
    return undefined
  }
}

/** Asks with the credentials, and once more with new ones if they are refused. */
async function send(
  { fetch, authorization, signal }: RemoteExport,
  url: string,
  { headers, ...init }: RequestInit & { readonly headers: Readonly<Record<string, string>> },
): Promise<Response> {
  const ask = async () => {
    const header = await authorization.get()
    const all = { ...headers, ...(header !== undefined && { authorization: header }) }
    return fetch(url, { redirect: 'error', signal, ...init, headers: all })
  }
  const response = await ask()
  if (response.status !== 401) return response
  authorization.forget()
  await response.body?.cancel()
  return ask()
}

const END_MS = 10_000

/** Lets the server remove the files. It does so later if this fails. */
async function end(options: RemoteExport, statusUrl: string): Promise<void> {
  const signal = AbortSignal.timeout(END_MS)
  try {
    const response = await send({ ...options, signal }, statusUrl, { method: 'DELETE', headers: {} })
    await response.body?.cancel()
  } catch {}
}

/** The words of the server, on one line. */
function readReason(text: string): string {
  return toPlainLine(findReason(parseJson(text))).slice(0, 500)
}

async function failAnswered(response: Response, to: string): Promise<NotExported> {
  const reason = readReason((await readText(response)) ?? '')
  return fail({ text: `it answered ${response.status} to ${to}${reason && `: ${reason}`}` })
}

/** The text of a response; undefined if it is longer than any resource that can be imported. */
async function readText({ body }: Response): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of toBuffers(body)) {
    length += chunk.length
    if (length > MAX_LINE_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
