import { isIP } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import type { KeptRecord } from '../trail/find.ts'
import type { SendRecords } from './feed.ts'
import { createSentEvent } from './fhir-sender.ts'

export interface SyslogSenderOptions {
  /** `tls://host:port` */
  readonly url: string
  readonly fhirBaseUrl: string
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>
}

const DEFAULT_PORT = 6514
const TIMEOUT_MS = 10_000

/** Longer than a round trip: a receiver that closed the connection before it read the messages is noticed. */
const SETTLE_MS = 200

/**
 * Sends syslog messages over TLS (RFC 5424, RFC 5425). Syslog has no acknowledgement: each group of records has a connection of its
 * own, and counts as received when the receiver has closed it after reading to the end.
 */
export function createSyslogSender({ url, fhirBaseUrl, tls }: SyslogSenderOptions): SendRecords {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const options: ConnectionOptions = {
    ...tls,
    host,
    port: Number(port || DEFAULT_PORT),
    ...(isIP(host) === 0 && { servername: host }),
  }
  return async (records, signal) => {
    const frames = records.map(record => formatFrame(formatMessage(record, fhirBaseUrl)))
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

export function formatMessage(record: KeptRecord, fhirBaseUrl: string): string {
  const event = createSentEvent(record, fhirBaseUrl)
  const outcome = 'outcome' in event ? String(event.outcome) : '8'
  const time = new Date(record.at).toISOString()
  const host = new URL(fhirBaseUrl).hostname
  return `<${PRIORITIES[outcome]}>1 ${time} ${host} sallyport - AuditEvent - ${toAscii(event)}`
}

/** ASCII needs no byte order mark, which readers of JSON would not expect. */
function toAscii(event: object): string {
  return JSON.stringify(event).replace(
    /[\u007f-\uffff]/g,
    unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
