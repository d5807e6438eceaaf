import { X509Certificate } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { type AuditLag, type Auditor, measureAuditLag } from '../../audit/index.ts'
import { createCachedFetch } from '../../cache/index.ts'
import type { Store } from '../../store/index.ts'
import { processMetrics } from '../../web/http/index.ts'

/** The use of the connection pool. SQLite has none. */
export function reportPool({ pool }: Store): void {
  if (!pool) return
  processMetrics.gauge(
    {
      name: 'sallyport_database_connections',
      help: 'Connections to PostgreSQL by state: idle or busy.',
      labels: ['state'],
      merge: 'sum',
    },
    () => [
      [pool().idle, 'idle'],
      [pool().busy, 'busy'],
    ],
  )
  processMetrics.gauge(
    {
      name: 'sallyport_database_connections_max',
      help: 'Size of the connection pools.',
      merge: 'sum',
    },
    () => [[pool().max]],
  )
  processMetrics.gauge(
    {
      name: 'sallyport_database_waiting_statements',
      help: 'Statements that wait for a connection.',
      merge: 'sum',
    },
    () => [[pool().waiting]],
  )
}

const auditDurations = processMetrics.histogram({
  name: 'sallyport_audit_write_duration_seconds',
  help: 'Time until audit records are on disk, for which responses wait; the outcome is stored or failed.',
  labels: ['outcome'],
})
let waiting = 0
processMetrics.gauge(
  {
    name: 'sallyport_audit_waiting_writes',
    help: 'Audit records of requests that wait until they are on disk.',
    merge: 'sum',
  },
  () => [[waiting]],
)

/** Measures how long requests wait for their audit records. */
export function timeAuditor(auditor: Auditor): Auditor {
  async function time<T>(write: Promise<T>): Promise<T> {
    const began = performance.now()
    const observe = (outcome: string) => {
      waiting -= 1
      auditDurations.observe([outcome], (performance.now() - began) / 1000)
    }
    waiting += 1
    try {
      const result = await write
      observe('stored')
      return result
    } catch (error) {
      observe('failed')
      throw error
    }
  }
  return {
    ...auditor,
    record: (...records) => time(auditor.record(...records)),
    intend: record => time(auditor.intend(record)),
  }
}

export const reloads = processMetrics.counter({
  name: 'sallyport_reloads_total',
  help: 'Reloads of settings, and of certificates that were replaced: applied or refused.',
  labels: ['subject', 'outcome'],
})

/** When the certificate of the servers ends. */
export function reportCertificate(getCertificate: () => string | undefined): void {
  processMetrics.gauge(
    {
      name: 'sallyport_tls_certificate_expiry_timestamp_seconds',
      help: 'End of the TLS certificate of the servers, in seconds since 1970.',
      merge: 'min',
    },
    () => {
      const certificate = getCertificate()
      return certificate ? [[new X509Certificate(certificate).validToDate.getTime() / 1000]] : []
    },
  )
}

/** How far the hash chain and the feeds are behind the audit trail. */
export function reportAuditLag(store: Store, feeds: readonly string[]): void {
  // The gauges share a measurement. While the database is unavailable, they have no values.
  const lags = createCachedFetch<readonly AuditLag[]>({
    clock: Date.now,
    fetch: async () => {
      const late = setTimeout(LAG_MS, [], { ref: false })
      const measured = measureAuditLag(store, feeds).catch(() => [])
      return { value: await Promise.race([measured, late]), freshForMs: LAG_MS }
    },
  })
  const addGauge = (name: string, help: string, read: (lag: AuditLag) => number) =>
    processMetrics.gauge({ name, help, labels: ['feed'], merge: 'max' }, async () =>
      (await lags.get('')).map(lag => [read(lag), lag.name] as const),
    )
  addGauge(
    'sallyport_audit_lag_records',
    'Audit records that the hash chain (seal) or a feed has not processed, at most.',
    ({ waiting }) => waiting,
  )
  addGauge('sallyport_audit_lag_seconds', 'Age of the oldest of these records.', ({ oldestAt }) =>
    oldestAt === undefined ? 0 : Math.max(0, (Date.now() - oldestAt) / 1000),
  )
  addGauge(
    'sallyport_audit_refused_records',
    'Audit records that the receiver of a feed refused, and that are sent again.',
    ({ refused }) => refused,
  )
}

const LAG_MS = 1_000
