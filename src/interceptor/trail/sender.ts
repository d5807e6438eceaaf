import { randomUUID } from 'node:crypto'
import { type AuditRecord, countAnonymous, KINDS_COUNTED, toSentRecord } from '../../audit-record/index.ts'
import { type ClientCredential, createClientToken } from '../../client-token/index.ts'
import { type Fetch, isRecord, toRecord } from '../../core/index.ts'
import type { DecisionTrail } from '../interceptor.ts'
import { removeTrailingSlash } from '../token/check-claims.ts'

export interface TrailSenderOptions {
  /** The auth server, whose trail gets the records. */
  readonly authUrl: string
  readonly fhirBaseUrl: string
  /** A client that was added with `client add --audit`. */
  readonly clientId: string
  readonly credential: ClientCredential
  /**
   * What happens while `maxWaiting` records wait because the auth server does not take them: `refuse` (default) has all
   * requests refused with a 503, `drop` loses further records.
   */
  readonly whenFull?: 'refuse' | 'drop' | undefined
  /** By default 10,000. */
  readonly maxWaiting?: number | undefined
  /** Called when records cannot be sent, once until they can; and for each record that is lost or not accepted. */
  readonly onError?: ((error: unknown) => void) | undefined
  readonly fetch?: Fetch | undefined
  readonly clock?: (() => number) | undefined
}

export interface TrailSender extends DecisionTrail {
  /** The records that the auth server does not have yet. */
  readonly waiting: number
  /** Sends what waits. Resolves when nothing waits, or when the auth server takes no more. */
  flush(): Promise<void>
  /** Sends what waits, and stops. Await it before the process ends: records that still wait are lost. */
  close(): Promise<void>
}

const SCOPE = 'sallyport/audit'
const MAX_WAITING = 10_000
const BATCH_RECORDS = 200
/** Half of what the auth server takes in one request. */
const BATCH_BYTES = 500_000
const DELAY_MS = 500
const MAX_DELAY_MS = 30_000
const TIMEOUT_MS = 10_000

interface Waiting {
  readonly id: string
  /** As JSON. */
  readonly text: string
}

/**
 * Sends audit records to the trail of the auth server, in batches and in order. A batch that was not confirmed is sent
 * again; the ids of its records keep the trail from holding a record twice. Anonymous requests are counted as our own
 * servers do, so that a stranger cannot fill the queue.
 */
export function createTrailSender(options: TrailSenderOptions): TrailSender {
  const { clientId, credential, whenFull = 'refuse', maxWaiting = MAX_WAITING } = options
  const { onError = () => {}, clock = Date.now } = options
  const send: Fetch = options.fetch ?? ((url, init) => fetch(url, init))
  const authUrl = removeTrailingSlash(options.authUrl)
  const tokenUrl = `${authUrl}/oauth2/token`
  const token = createClientToken({ tokenUrl, clientId, credential, scope: SCOPE, fetch: send, clock })
  const anonymous = countAnonymous(async records => add(records), {
    clock,
    fullRecords: 1,
    kinds: KINDS_COUNTED,
  })
  // Requests in progress may still be recorded after the last one was let through.
  const most = whenFull === 'refuse' ? 2 * maxWaiting : maxWaiting
  let waiting: Waiting[] = []
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isClosed = false

  function add(records: readonly AuditRecord[]): void {
    for (const record of records)
      if (waiting.length < most)
        waiting.push({ id: randomUUID(), text: JSON.stringify(toSentRecord(record)) })
      else onError(new Error(`Cannot keep an audit record: ${waiting.length} are waiting`))
    schedule()
  }

  function schedule(): void {
    if (timer || running || isClosed || waiting.length === 0) return
    const delay = Math.min(DELAY_MS * 2 ** failures, MAX_DELAY_MS)
    timer = setTimeout(() => void flush(), delay)
    timer.unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    running ??= sendAll().finally(() => {
      running = undefined
      schedule()
    })
    return running
  }

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = takeBatch(waiting)
      try {
        for (const { id, reason } of await post(batch))
          onError(new Error(`The audit trail does not accept record ${id}: ${reason}`))
      } catch (error) {
        failures += 1
        if (failures === 1) onError(error)
        return
      }
      failures = 0
      waiting = waiting.slice(batch.length)
    }
  }

  /** Returns the records that the auth server does not accept, now or ever. */
  async function post(batch: readonly Waiting[]): Promise<readonly RefusedRecord[]> {
    const about = JSON.stringify({ issuer: authUrl, fhirBaseUrl: removeTrailingSlash(options.fhirBaseUrl) })
    const records = batch.map(({ id, text }) => `{"id":"${id}","record":${text}}`)
    const response = await send(`${authUrl}/audit-records`, {
      method: 'POST',
      headers: { authorization: await token.getAuthorization(), 'content-type': 'application/json' },
      body: `${about.slice(0, -1)},"records":[${records.join(',')}]}`,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (response.status === 401) token.forget()
    const body: unknown = await response.json().catch(() => undefined)
    if (!response.ok || !isRecord(body) || !Array.isArray(body.refused))
      throw new Error(`Cannot send audit records: ${response.status} ${describe(body)}`)
    return body.refused.filter(isRefused)
  }

  return {
    get waiting() {
      return waiting.length
    },
    send: record => add(anonymous.select([record]).kept),
    hasRoom: () => whenFull === 'drop' || waiting.length < maxWaiting,
    flush,
    async close() {
      await anonymous.flush()
      isClosed = true
      await flush()
    },
  }
}

/** The first records that one request may hold, at least one. */
function takeBatch(waiting: readonly Waiting[]): readonly Waiting[] {
  let bytes = 0
  const most = waiting.slice(0, BATCH_RECORDS)
  const end = most.findIndex(({ text }, at) => {
    bytes += Buffer.byteLength(text)
    return at > 0 && bytes > BATCH_BYTES
  })
  return end < 0 ? most : most.slice(0, end)
}

interface RefusedRecord {
  readonly id: string
  readonly reason: string
}

function isRefused(value: unknown): value is RefusedRecord {
  return isRecord(value) && typeof value.id === 'string' && typeof value.reason === 'string'
}

/** The error of RFC 6749, 5.2. */
function describe(body: unknown): string {
  const { error_description: text } = toRecord(body)
  return typeof text === 'string' ? text : ''
}
