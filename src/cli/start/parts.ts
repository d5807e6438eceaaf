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
import { openStoreOf } from '../with-store.ts'
import type { Closing } from './closing.ts'
import type { Tls } from './tls.ts'

/** What all servers of a process have in common. */
export interface Parts {
  readonly settings: Settings
  readonly logger: Logger
  readonly tls: Tls | undefined
  /** Says to whoever started it what takes a while. */
  readonly tell: (line: string) => void
}

/** What the servers keep in the database. The embedded FHIR server has a file of its own besides. */
export interface Keeping {
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
}

/** Opens the database, and removes expired rows while the servers run (STORE-3). */
export async function openKeeping({ settings, logger }: Parts, closing: Closing): Promise<Keeping> {
  const secret = ensureSecret(settings)
  const store = await openStoreOf(settings)
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
      // What is refused for an outage is logged by the server, once: the request was refused, or the records are kept.
      if (!isDatabaseUnavailable(error)) logger.error({ err: error, records }, 'Cannot keep audit records')
      else if (settings.audit.failure === 'allow') logger.error({ records }, 'Cannot keep audit records')
    },
  })
  closing.add(() => auditor.flush())
  return auditor
}
