import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import {
  type Auditor,
  createAuditor,
  noAudit,
  startReportingUnknown,
  startSweepingAudit,
} from '../../audit/index.ts'
import { ensureSecret, type Settings } from '../../config/index.ts'
import {
  isDatabaseUnavailable,
  openSealer,
  type Sealer,
  type Store,
  startSweeping,
} from '../../store/index.ts'
import type { Logger } from '../../web/index.ts'
import { CommandFailure, failMisuse } from '../command.ts'
import { openConfiguredStore } from '../with-store.ts'

const serverNames = ['auth', 'fhir', 'app'] as const
export type ServerName = (typeof serverNames)[number]

export function chooseServers(names: readonly string[]): readonly ServerName[] {
  const unknown = names.find(name => !serverNames.some(known => known === name))
  if (unknown !== undefined) throw failMisuse(`Unknown server ${unknown}: expected ${serverNames.join(', ')}`)
  return names.length === 0 ? serverNames : serverNames.filter(name => names.includes(name))
}

/** Closes resources in reverse order of opening. */
export class Closing {
  readonly #steps: (() => unknown)[] = []

  add(step: () => unknown): void {
    this.#steps.unshift(step)
  }

  /** Closes everything even if a step fails; throws the first failure at the end. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#steps.splice(0)) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

export interface Parts {
  readonly settings: Settings
  readonly logger: Logger
  readonly tls: Tls | undefined
  readonly tell: (line: string) => void
}

export interface Keeping {
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
}

/** Opens the database, and removes expired rows while the servers run (STORE-3). */
export async function openKeeping({ settings, logger }: Parts, closing: Closing): Promise<Keeping> {
  const secret = ensureSecret(settings)
  const store = await openConfiguredStore(settings)
  closing.add(() => store.close())
  const sweeping = startSweeping(store, {
    onError: error => logger.warn({ err: error }, 'Cannot remove expired rows'),
  })
  closing.add(() => sweeping.stop())
  const auditSweeping = startSweepingAudit(store, {
    days: settings.audit.days,
    onError: error => logger.warn({ err: error }, 'Cannot remove old audit records'),
  })
  closing.add(() => auditSweeping.stop())
  const reporting = startReportingUnknown(store, {
    onError: error => logger.warn({ err: error }, 'Cannot report changes whose outcome is unknown'),
  })
  closing.add(() => reporting.stop())
  return {
    store,
    sealer: await openSealer(store, secret),
    audit: openAudit({ settings, logger }, store, closing),
  }
}

function openAudit(
  { settings, logger }: Pick<Parts, 'settings' | 'logger'>,
  store: Store,
  closing: Closing,
): Auditor {
  if (!settings.audit.kept) return noAudit
  const auditor = createAuditor({
    store,
    failure: settings.audit.failure,
    onError: (error, records) => {
      // The server logs an outage once, and the request was refused or the records are kept.
      if (!isDatabaseUnavailable(error)) logger.error({ err: error, records }, 'Cannot store audit records')
      else if (settings.audit.failure === 'allow') logger.error({ records }, 'Cannot store audit records')
    },
  })
  closing.add(() => auditor.flush())
  return auditor
}

interface Tls {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Reads and tests certificate and key once, so that a wrong file stops the start and not the first request. */
export function readTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const tls = { cert: readPem('SMART_TLS_CERT', tlsCert), key: readPem('SMART_TLS_KEY', tlsKey) }
  try {
    createSecureContext(tls)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(`Cannot use SMART_TLS_CERT with SMART_TLS_KEY: ${reason}`)
  }
  return tls
}

function readPem(variable: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CommandFailure(`Cannot read ${variable} ${path}: ${code}`)
  }
}
