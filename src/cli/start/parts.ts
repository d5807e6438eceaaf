import { type Auditor, createAuditor, noAudit } from '../../audit/index.ts'
import type { Controls } from '../../auth/index.ts'
import type { Serialize } from '../../cache/index.ts'
import { ensureSecret, type Settings, SettingsError } from '../../config/index.ts'
import type { TrustedIssuer } from '../../interceptor/index.ts'
import { createSealer, isDatabaseUnavailable, type Sealer, type Store } from '../../store/index.ts'
import type { Logger } from '../../web/http/index.ts'
import { failMisuse } from '../command.ts'
import { openConfiguredStore } from '../with-store.ts'
import type { LiveState } from './live.ts'
import { reportPool, timeAuditor } from './process-metrics.ts'

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

/** The reload at SIGHUP. As soon as the database is open, it is recorded. */
export interface AtSignal {
  /** The user of the operating system who runs the servers, and the host. */
  readonly operator: string
  reload(): Promise<unknown>
}

export interface Parts {
  readonly names: readonly ServerName[]
  readonly settings: Settings
  readonly trustedIssuers: readonly TrustedIssuer[]
  readonly live: LiveState
  readonly controls: Controls
  readonly atSignal?: AtSignal
  readonly logger: Logger
  /** Whether the start makes up and prints a password for the test clinician. */
  readonly isPasswordRandom?: boolean
  /** Standard output is for a script. */
  readonly logsToStderr?: boolean
  /** Serializes conditional writes of all workers. */
  readonly serialize?: Serialize
  /** The number of this worker process. */
  readonly worker?: number
}

/** Prints a line for the user. */
export type PrintLine = (line: string) => void

export interface Storage {
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
}

export async function openStorage({ settings, logger, worker }: Parts, closing: Closing): Promise<Storage> {
  const secret = ensureSecret(settings)
  const store = await openConfiguredStore(settings, {
    ...(worker !== undefined && { worker }),
    onStuckRecords: error => logger.error({ err: error }, 'Cannot move audit records to the audit trail'),
  })
  closing.add(() => store.close())
  reportPool(store)
  const sealer = createSealer(secret)
  await checkSecret(store, sealer)
  return { store, sealer, audit: openAudit({ settings, logger }, store, closing) }
}

/** Every server needs the secret: it also seals the audit trail and the tokens of sessions. */
async function checkSecret(store: Store, sealer: Sealer): Promise<void> {
  const { canOpenSigningKeys } = await import('../../auth/index.ts')
  if (await canOpenSigningKeys(store, sealer)) return
  throw new SettingsError(
    'Cannot start: SMART_SECRET does not decrypt the signing keys of this database. Set the secret that encrypted them, or replace all keys: keys withdraw --all',
  )
}

/** Developers repeat their requests, make many different mistakes, and each error page has a reference. */
const DEVELOPER_RECORDS = { fullRecords: 20, kinds: 200 } as const

function openAudit(
  { settings, logger }: Pick<Parts, 'settings' | 'logger'>,
  store: Store,
  closing: Closing,
): Auditor {
  if (!settings.audit.kept) return noAudit
  const auditor = createAuditor({
    store,
    failure: settings.audit.failure,
    ...(settings.developerTools && DEVELOPER_RECORDS),
    onError: (error, records) => {
      // The server logs an outage once, and the request was refused or the records are kept.
      if (!isDatabaseUnavailable(error)) logger.error({ err: error, records }, 'Cannot store audit records')
      else if (settings.audit.failure === 'allow') logger.error({ records }, 'Cannot store audit records')
    },
  })
  closing.add(() => auditor.flush())
  return timeAuditor(auditor)
}

/** After an uncaught error the state is unknown: the process logs it and exits. */
export function endAtUnexpected(logger: Logger): void {
  process.on('uncaughtException', error => {
    logger.fatal({ err: error }, 'Stopped after an unexpected error')
    process.exit(1)
  })
}
