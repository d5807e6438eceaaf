import { Readable } from 'node:stream'
import { isFailure } from '../../core/index.ts'
import { createOutcome, failFor } from '../../fhir/index.ts'
import type { ExportRow } from '../backend.ts'
import type { Context, Handler } from '../context.ts'
import type { ExportFile, ExportJob } from '../exports.ts'
import type { FhirRequest, Operation } from '../request.ts'
import type { Failure, FhirResponse, StreamRecord } from '../response.ts'
import { readBlocks } from './blocks.ts'
import { type FileContent, openFileUrl } from './file-url.ts'
import { findOwner } from './kick-off.ts'
import { EXPORT_CHECK_MS, EXPORT_DOWNLOADS } from './limits.ts'
import { formatDeletion, formatHeader, formatLine, LineWriter } from './line.ts'
import { openRelayed } from './relay.ts'
import { createRowCheck, listPatients, selectRows } from './rows.ts'
import { findJob } from './status.ts'

const NDJSON = { 'content-type': 'application/fhir+ndjson' }

/**
 * A file of an export, which is made while it is sent: the rows of the backend as they were at the start of the export, each
 * checked with the token of this request (Output File Request).
 */
export const sendFile: Handler<'operation'> = async (context, request) => {
  const { exports, clock } = context
  const sealed = request.interaction.params.find(([name]) => name === 'of')?.[1]
  const content = exports && sealed !== undefined ? openFileUrl(exports.sealer, sealed) : undefined
  const owner = findOwner(request)
  if (!exports || !content || !owner) return failFor('export-unknown')
  const askedAt = clock()
  const release = await exports.downloads.take(owner, request.connection)
  if (!release) return failFor('export-downloads-too-many', { most: EXPORT_DOWNLOADS })
  let body: Readable | undefined
  try {
    // Not before its turn: a request that waits keeps nothing of the export.
    const response = await openFile(context, request, content, askedAt)
    if (!isFailure(response)) body = response.body
    return response
  } finally {
    if (body) body.once('close', release)
    else release()
  }
}

async function openFile(
  context: Context,
  request: FhirRequest<Operation>,
  content: FileContent,
  askedAt: number,
): Promise<(FhirResponse & { readonly body: Readable }) | Failure> {
  const job = await findJob(context, request, content.job)
  if (!job) return failFor('export-unknown')
  const { file, place } = content
  if (!file && place === undefined)
    return {
      status: 200,
      headers: NDJSON,
      body: Readable.from([Buffer.from(formatNotes(job))]),
      contents: [],
    }
  const sent = new SentRows(context.baseUrl)
  const hasLeft = () => !isFailure(body) && body.destroyed
  const checkEnd = createEndCheck(context, request, job, askedAt)
  const body: Readable | Failure = file
    ? Readable.from(writeLines(context, request, { job, file, sent, checkEnd, hasLeft }), {
        objectMode: false,
      })
    : await openRelayed(context, request, place, { sent, checkEnd })
  return isFailure(body) ? body : { status: 200, headers: NDJSON, body, streamed: sent }
}

/** OperationOutcomes about what the client asked for and does not get. */
function formatNotes({ order }: ExportJob): string {
  const lines = order.notes.map(text => {
    const { resourceType, issue } = createOutcome('informational', text)
    return `${JSON.stringify({ resourceType, issue: issue.map(it => ({ ...it, severity: 'warning' })) })}\n`
  })
  return lines.join('')
}

/** What was sent, for the audit trail. */
class SentRows implements StreamRecord {
  readonly #baseUrl: string
  readonly #known = new Set<string>()
  #found: string[] = []
  #count = 0
  isWhole = false

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
  }

  add(row: Parameters<typeof listPatients>[0]): void {
    this.#count++
    for (const id of listPatients(row, this.#baseUrl)) {
      if (this.#known.has(id)) continue
      this.#known.add(id)
      this.#found.push(id)
    }
  }

  get waiting(): number {
    return this.#found.length
  }

  takePatients(): readonly string[] {
    const found = this.#found
    this.#found = []
    return found
  }

  describe(): string {
    const lines = `${this.#count} ${this.#count === 1 ? 'line' : 'lines'}`
    return this.isWhole ? `Exported file with ${lines}` : `Exported file that broke off after ${lines}`
  }
}

/** Throws if the export has ended or the token was revoked. `askedAt` is when the token was checked. */
function createEndCheck(
  { exports, clock }: Context,
  request: FhirRequest,
  { id }: ExportJob,
  askedAt: number,
): () => Promise<void> {
  let checkedAt = askedAt
  return async () => {
    if (clock() - checkedAt < EXPORT_CHECK_MS) return
    checkedAt = clock()
    if (!(await exports?.jobs.isOpen(id, checkedAt)) || (await request.isRevoked()))
      throw new Error('Cannot go on with a file: its export has ended, or its token was revoked')
  }
}

interface SentFile {
  readonly job: ExportJob
  readonly file: ExportFile
  readonly sent: SentRows
  readonly checkEnd: () => Promise<void>
  /** Whether the client has left. The stream closes only when the lines end. */
  hasLeft(): boolean
}

/** Throws if rows are missing, or if the token was revoked or the export has ended: the response then breaks off, and is never taken for a whole file. */
async function* writeLines(
  context: Context,
  request: FhirRequest<Operation>,
  { job, file, sent, checkEnd, hasLeft }: SentFile,
): AsyncGenerator<Buffer> {
  const { order } = job
  const checks = new Map<string, ReturnType<typeof createRowCheck>>()
  const findCheck = (type: string) => {
    const check = checks.get(type) ?? createRowCheck(context, request, order, { type, kind: file.kind })
    checks.set(type, check)
    return check
  }
  const lines = new LineWriter(context.baseUrl)
  let headed: string | undefined
  for await (const part of readParts(context, job, file)) {
    // Without lines for the client, nothing else would notice.
    if (hasLeft()) return
    await checkEnd()
    if (isFailure(part)) throw failFile(part)
    const kept = await findCheck(part.type)(part.rows)
    if (isFailure(kept)) throw failFile(kept)
    if (part.patient !== headed && kept.length > 0) {
      headed = part.patient
      const full = lines.add(formatHeader(headed))
      if (full) yield full
    }
    for (const row of kept) {
      sent.add(row)
      const full = lines.add(file.kind === 'deleted' ? formatDeletion(row) : formatLine(row, order))
      if (full) yield full
    }
    await request.work.pause()
  }
  sent.isWhole = true
  const rest = lines.take()
  if (rest) yield rest
}

function failFile({ reason }: Failure): Error {
  return new Error(`Cannot go on with a file of an export: ${reason}`)
}

interface PartOfFile {
  readonly type: string
  readonly rows: readonly ExportRow[]
  /** In a file that is organized by patient. */
  readonly patient?: string
}

async function* readParts(
  { session }: Context,
  { order, plan: { types = [] } }: ExportJob,
  file: ExportFile,
): AsyncGenerator<PartOfFile | Failure> {
  if (order.isByPatient && file.kind === 'output')
    return yield* readBlocks(session.rows, { order, types }, file)
  for await (const rows of session.rows.read(selectRows(order, file), file))
    yield isFailure(rows) ? rows : { type: file.type, rows }
}
