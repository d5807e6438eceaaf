import { isIP } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { isRecord, parseJson } from '../../core/index.ts'
import { type AuditEventOptions, toAuditEvent } from '../fhir/to-audit-event.ts'
import type { KeptRecord } from '../trail/find.ts'
import type { RefusedRecord, SendRecords } from './feed.ts'

type EventOptions = Pick<AuditEventOptions, 'fhirBaseUrl' | 'ids'>

interface FhirSenderOptions extends EventOptions {
  readonly url: string
  readonly token?: string | undefined
  /** Sends the body with the headers, and must not follow redirects. */
  readonly post: (
    url: string,
    init: {
      readonly headers: Readonly<Record<string, string>>
      readonly body: string
      readonly signal: AbortSignal
    },
  ) => Promise<{ readonly status: number; readonly text: string }>
}

const TIMEOUT_MS = 10_000

/** The receiver understood the request and does not accept its content: sending it again does not help. */
const REFUSALS: ReadonlySet<number> = new Set([400, 409, 412, 413, 422])

/**
 * Sends a transaction Bundle to a FHIR server (IHE ITI-20, FHIR Feed). If the server refuses the Bundle, each half is
 * sent separately, until the refused events are found.
 */
export function createFhirSender({ url, token, post, ...options }: FhirSenderOptions): SendRecords {
  const headers = {
    'content-type': 'application/fhir+json',
    accept: 'application/fhir+json',
    prefer: 'return=minimal',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }

  async function send(
    records: readonly KeptRecord[],
    signal: AbortSignal,
  ): Promise<readonly RefusedRecord[]> {
    const { status, text } = await post(url, {
      headers,
      body: JSON.stringify(createBundle(records, options)),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    if (status >= 200 && status < 300) return findRefusedEntries(records, text)
    if (!REFUSALS.has(status)) throw new Error(`Cannot send audit records to ${url}: HTTP ${status}`)
    const [first, ...more] = records
    if (first && more.length === 0) return [{ id: first.id, reason: `HTTP ${status}` }]
    const middle = Math.ceil(records.length / 2)
    return [...(await send(records.slice(0, middle), signal)), ...(await send(records.slice(middle), signal))]
  }

  return send
}

function createBundle(records: readonly KeptRecord[], options: EventOptions): object {
  return {
    resourceType: 'Bundle',
    type: 'transaction',
    entry: records.map(record => ({
      resource: createSentEvent(record, options),
      request: { method: 'POST', url: 'AuditEvent' },
    })),
  }
}

/** The receiver assigns another id. `meta.source` stays the same if an event is sent twice. */
function createSentEvent(record: KeptRecord, options: EventOptions): object {
  const { id, meta, ...event } = toAuditEvent(record, { ...options, absolute: true })
  const profile = isRecord(meta) ? meta.profile : undefined
  return {
    ...event,
    meta: { source: `${options.fhirBaseUrl}/AuditEvent/${id}`, ...(profile !== undefined && { profile }) },
  }
}

/** A server that handles a transaction like a batch refuses entries with a status of their own. */
function findRefusedEntries(records: readonly KeptRecord[], text: string): readonly RefusedRecord[] {
  const bundle = parseJson(text)
  const entries = isRecord(bundle) && Array.isArray(bundle.entry) ? bundle.entry : []
  return records.flatMap(({ id }, place) => {
    const entry: unknown = entries[place]
    const response = isRecord(entry) ? entry.response : undefined
    const status = isRecord(response) ? String(response.status) : '2'
    return status.startsWith('2') ? [] : [{ id, reason: `HTTP ${status.slice(0, 3)}` }]
  })
}

interface SyslogSenderOptions extends EventOptions {
  /** `tls://host:port` */
  readonly url: string
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>
}

const DEFAULT_PORT = 6514

/** Longer than a round trip: a receiver that closed the connection before it read the messages is noticed. */
const SETTLE_MS = 200

/**
 * Sends syslog messages over TLS (RFC 5424, RFC 5425). Syslog has no acknowledgement: each group of records has a connection of its
 * own, and counts as received when the receiver has closed it after reading to the end.
 */
export function createSyslogSender({ url, tls, ...eventOptions }: SyslogSenderOptions): SendRecords {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const options: ConnectionOptions = {
    ...tls,
    host,
    port: Number(port || DEFAULT_PORT),
    ...(isIP(host) === 0 && { servername: host }),
  }
  return async (records, signal) => {
    const frames = records.map(record => formatFrame(formatMessage(record, eventOptions)))
    await deliver(options, frames.join(''), AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]))
    return []
  }
}

function deliver(options: ConnectionOptions, text: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let isEnding = false
  const end = () => {
    isEnding = true
    socket.end()
  }
  const socket = connect(options, () => socket.write(text, () => setTimeout(end, SETTLE_MS)))
  const abort = () => socket.destroy(new Error('Cannot send to syslog: no response in time'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  socket.resume()
  socket.once('end', () => {
    if (!isEnding) socket.destroy(new Error('Cannot send to syslog: the receiver closed the connection'))
  })
  socket.once('error', reject)
  socket.once('close', () => {
    signal.removeEventListener('abort', abort)
    resolve()
  })
  return promise
}

/** RFC 5425, 4.3: the length in octets. A message is ASCII. */
function formatFrame(message: string): string {
  return `${message.length} ${message}`
}

/** RFC 5424: facility 10 (security). Severity 5, 4 and 3: success, refusal, failure of the server. */
const PRIORITIES: Readonly<Record<string, number>> = { '0': 85, '4': 84, '8': 83 }

function formatMessage(record: KeptRecord, options: EventOptions): string {
  const event = createSentEvent(record, options)
  const outcome = 'outcome' in event ? String(event.outcome) : '8'
  const time = new Date(record.at).toISOString()
  const host = new URL(options.fhirBaseUrl).hostname
  return `<${PRIORITIES[outcome]}>1 ${time} ${host} sallyport - AuditEvent - ${toAscii(event)}`
}

/** ASCII needs no byte order mark, which readers of JSON would not expect. */
function toAscii(event: object): string {
  return JSON.stringify(event).replace(
    /[\u007f-\uffff]/g,
    unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
