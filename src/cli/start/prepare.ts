import {
  createFhirSender,
  createSyslogSender,
  type EventIds,
  openEventIds,
  type SendRecords,
  startFeed,
  startReportingUnknown,
  startSealing,
  startSweepingAudit,
} from '../../audit/index.ts'
import type { Settings } from '../../config/index.ts'
import { type Store, startSweeping } from '../../store/index.ts'
import { logOutages } from '../../web/http/index.ts'
import { type PreparedAuth, prepareAuth } from './auth.ts'
import { prepareFhir } from './fhir.ts'
import { readFeedTls } from './files.ts'
import { type Closing, openStorage, type Parts, type PrintLine, type Storage } from './parts.ts'
import { reportAuditLag } from './process-metrics.ts'

/** Undefined: not needed, or another process has done it. */
export interface Preparation {
  readonly storage: Promise<Storage>
  readonly auth: Promise<PreparedAuth> | undefined
  readonly fhir: Promise<void> | undefined
}

/**
 * Does the work of a start that only one process does (START-8). In parallel: the first start creates an RSA key in one
 * thread and the sample patients in another.
 */
export function prepare(parts: Parts, printLine: PrintLine, closing: Closing): Preparation {
  const { names } = parts
  const storage = openWithUpkeep(parts, closing)
  return {
    storage,
    auth: names.includes('auth') ? storage.then(kept => prepareAuth(parts, kept, printLine)) : undefined,
    fhir: names.includes('fhir') ? prepareFhir(parts, printLine, closing) : undefined,
  }
}

/** Opens the database, and removes expired rows while the servers run (STORE-3). */
async function openWithUpkeep(parts: Parts, closing: Closing): Promise<Storage> {
  const storage = await openStorage(parts, closing)
  if (parts.settings.audit.kept) reportAuditLag(storage.store, listFeedNames(parts.settings))
  for (const { stop } of startUpkeep(parts, storage)) closing.add(stop)
  for (const { stop } of await startAuditFeeds(parts, storage.store)) closing.add(stop)
  closing.add((await followOthers(parts, storage)).stop)
  await recordReloads(parts, storage)
  return storage
}

/** Reloads the settings, and changes the log level, when an administrator of another instance does. */
async function followOthers({ controls, logger }: Parts, { store }: Storage) {
  const { followAnnouncements } = await import('../../auth/index.ts')
  return followAnnouncements(store, controls, {
    onError: logOutages(details => logger.warn(details, 'Cannot read the announcements of other instances')),
  })
}

/** A change by a signal is in the trail, like one by an administrator. Without a record nothing changes. */
async function recordReloads(
  { atSignal, controls, live, settings, logger }: Parts,
  { store, audit }: Storage,
): Promise<void> {
  if (!atSignal) return
  const { makeCommandLine, makeRules, reloadHere } = await import('../../auth/index.ts')
  const rules = makeRules(settings, () => live.current.login)
  const admin = { store, audit, clock: Date.now, rules, ...makeCommandLine(atSignal.operator) }
  atSignal.reload = () =>
    reloadHere(admin, controls, 'SIGHUP').catch(error =>
      logger.error({ err: error }, 'Cannot reload the settings: those in effect stay'),
    )
}

function startUpkeep(
  { settings, logger }: Parts,
  { store, sealer }: Storage,
): readonly { stop(): Promise<void> }[] {
  return [
    startSweeping(store, {
      onError: logOutages(details => logger.warn(details, 'Cannot remove expired rows')),
    }),
    startSweepingAudit(
      store,
      sealer,
      { days: settings.audit.days, feeds: listFeedNames(settings) },
      {
        onError: logOutages(details => logger.warn(details, 'Cannot remove old audit records')),
      },
    ),
    startSealing(store, sealer, {
      onError: logOutages(details => logger.error(details, 'Cannot seal the audit trail')),
    }),
    startReportingUnknown(store, {
      onError: logOutages(details => logger.warn(details, 'Cannot report changes whose outcome is unknown')),
    }),
  ]
}

const MAX_RESPONSE_BYTES = 4_000_000

type FeedSettings = Pick<Settings, 'auditFeeds' | 'fhirBaseUrl'>

/** The feeds that send audit records to other systems. */
function listFeedNames({ auditFeeds }: Pick<Settings, 'auditFeeds'>): readonly ('feed' | 'syslog')[] {
  return [
    ...(auditFeeds.fhirUrl === undefined ? [] : (['feed'] as const)),
    ...(auditFeeds.syslogUrl === undefined ? [] : (['syslog'] as const)),
  ]
}

async function startAuditFeeds(
  { settings, logger }: Pick<Parts, 'settings' | 'logger'>,
  store: Store,
): Promise<readonly { stop(): Promise<void> }[]> {
  const ids = await openEventIds(store)
  return Promise.all(
    listFeedNames(settings).map(async name =>
      startFeed(store, {
        name,
        send: name === 'feed' ? await createFeedSender(settings, ids) : createSyslog(settings, ids),
        onError: error => logger.error({ err: error, feed: name }, 'Cannot send audit records; they wait'),
        onRefused: refused => logger.error({ feed: name, refused }, 'Audit records were refused; they wait'),
      }),
    ),
  )
}

export async function createFeedSender(
  { auditFeeds, fhirBaseUrl }: FeedSettings,
  ids: EventIds,
): Promise<SendRecords> {
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ connect: readFeedTls(auditFeeds), maxResponseSize: MAX_RESPONSE_BYTES })
  return createFhirSender({
    url: auditFeeds.fhirUrl ?? '',
    token: auditFeeds.token,
    fhirBaseUrl,
    ids,
    async post(url, init) {
      const { statusCode, body } = await request(url, { ...init, method: 'POST', dispatcher })
      return { status: statusCode, text: await body.text() }
    },
  })
}

export function createSyslog({ auditFeeds, fhirBaseUrl }: FeedSettings, ids: EventIds): SendRecords {
  const tls = readFeedTls(auditFeeds)
  return createSyslogSender({ url: auditFeeds.syslogUrl ?? '', fhirBaseUrl, ids, tls })
}
