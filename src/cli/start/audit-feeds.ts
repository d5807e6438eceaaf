import { createFhirSender, createSyslogSender, type SendRecords, startFeed } from '../../audit/index.ts'
import type { Settings } from '../../config/index.ts'
import type { Store } from '../../store/index.ts'
import { readFeedTls } from './files.ts'
import type { Parts } from './parts.ts'

const MOST_RESPONSE_BYTES = 4_000_000

type FeedSettings = Pick<Settings, 'auditFeeds' | 'fhirBaseUrl'>

/** The feeds that send audit records to other systems. */
export function listFeedNames({ auditFeeds }: Pick<Settings, 'auditFeeds'>): readonly ('feed' | 'syslog')[] {
  return [
    ...(auditFeeds.fhirUrl === undefined ? [] : (['feed'] as const)),
    ...(auditFeeds.syslogUrl === undefined ? [] : (['syslog'] as const)),
  ]
}

export async function startAuditFeeds(
  { settings, logger }: Pick<Parts, 'settings' | 'logger'>,
  store: Store,
): Promise<readonly { stop(): Promise<void> }[]> {
  return Promise.all(
    listFeedNames(settings).map(async name =>
      startFeed(store, {
        name,
        send: name === 'feed' ? await createFeedSender(settings) : createSyslog(settings),
        onError: error => logger.error({ err: error, feed: name }, 'Cannot send audit records; they wait'),
        onRefused: refused => logger.error({ feed: name, refused }, 'Audit records were refused; they wait'),
      }),
    ),
  )
}

export async function createFeedSender({ auditFeeds, fhirBaseUrl }: FeedSettings): Promise<SendRecords> {
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ connect: readFeedTls(auditFeeds), maxResponseSize: MOST_RESPONSE_BYTES })
  return createFhirSender({
    url: auditFeeds.fhirUrl ?? '',
    token: auditFeeds.token,
    fhirBaseUrl,
    async post(url, init) {
      const { statusCode, body } = await request(url, { ...init, method: 'POST', dispatcher })
      return { status: statusCode, text: await body.text() }
    },
  })
}

export function createSyslog({ auditFeeds, fhirBaseUrl }: FeedSettings): SendRecords {
  return createSyslogSender({ url: auditFeeds.syslogUrl ?? '', fhirBaseUrl, tls: readFeedTls(auditFeeds) })
}
