import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FoundFiles, ImportReport, Reason, SentReport } from '../../backends/sqlite/import/index.ts'
import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'
import { readUpstreamAuth } from '../start/gateway.ts'
import type { Progress } from './report-text.ts'

/**
 * Imports into a temporary repository, which checks every resource, and sends the accepted resources to another
 * FHIR server.
 */
export async function importTo(
  address: string,
  settings: Settings,
  found: FoundFiles,
  progress: Progress,
): Promise<ImportReport> {
  const to = URL.parse(address)
  if (!to || !/^https?:$/.test(to.protocol) || to.search !== '' || to.hash !== '')
    throw new CommandFailure('Cannot import: --to is not an http or https URL')
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  const { BatchRefused, importFiles, sendAll } = await import('../../backends/sqlite/import/index.ts')
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-import-'))
  const baseUrl = to.href.replace(/\/+$/, '')
  const repository = openRepository({ file: join(folder, 'fhir.db'), baseUrl })
  try {
    const read = await importFiles({ files: found.files, repository, onProgress: progress.show })
    const authorization = await authorizationFor(baseUrl, settings)
    const onProgress = (sent: number, total: number) => progress.show({ read: sent, total, resources: sent })
    const sent = await sendAll({ repository, to: baseUrl, fetch, authorization, onProgress })
    return joined(read, sent, found)
  } catch (error) {
    if (error instanceof CommandFailure || !(error instanceof Error)) throw error
    const hint =
      error instanceof BatchRefused ? hintAt(error.status, baseUrl === settings.fhir.upstreamUrl) : ''
    throw new CommandFailure(`Cannot send to ${baseUrl}: ${reasonOf(error)}${hint}`)
  } finally {
    progress.end()
    repository.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The gateway's credentials are sent only to the gateway's upstream. */
async function authorizationFor(to: string, { fhir }: Settings) {
  if (to !== fhir.upstreamUrl) return () => undefined
  const { createCredentials } = await import('../../backends/upstream/index.ts')
  const timeoutMs = fhir.upstream.timeoutSeconds * 1000
  return createCredentials({ auth: readUpstreamAuth(fhir.upstream), fetch, clock: Date.now, timeoutMs })
    .getAuthorization
}

function joined(read: ImportReport, sent: SentReport, found: FoundFiles): ImportReport {
  const byReason = Map.groupBy(sent.refused, describeRefusal)
  return {
    ...read,
    created: sent.created,
    updated: sent.updated,
    unchanged: sent.unchanged,
    refused: read.refused + sent.refused.length,
    reasons: [...read.reasons, ...byReason.entries().map(toReason)].toSorted((a, b) => b.count - a.count),
    unreadable: [...found.unreadable, ...read.unreadable],
  }
}

function toReason([text, refused]: readonly [string, SentReport['refused']]): Reason {
  return { text, count: refused.length, places: refused.slice(0, 3).map(it => it.reference) }
}

/** Without ids, so that the same reason for another resource is the same text. */
function describeRefusal({ reference, status, reason }: SentReport['refused'][number]): string {
  const [type, id = ''] = reference.split('/')
  const text = reason
    .replaceAll(/\b([A-Z][A-Za-z]+)\/[A-Za-z0-9.-]{1,64}/g, '$1/…')
    .replaceAll(wordOf(id), '…')
  const hint = /HAPI-0960\b/.test(reason) ? NUMERIC_IDS : ''
  return `${type}: server returned ${status}${text && `: ${text}`}${hint}`
}

function wordOf(text: string): RegExp {
  return new RegExp(`\\b${RegExp.escape(text)}\\b`, 'g')
}

const NUMERIC_IDS =
  '. To keep numeric ids, set hapi.fhir.client_id_strategy: ANY in the application.yaml of HAPI'

// `fetch` hides the reason in the cause.
function reasonOf({ cause, message }: Error): string {
  if (!(cause instanceof Error)) return message
  return 'code' in cause ? String(cause.code) : cause.message || message
}

function hintAt(status: number, isUpstream: boolean): string {
  if (status !== 401 && status !== 403) return ''
  return isUpstream
    ? '; check SMART_FHIR_UPSTREAM_AUTH and its settings'
    : '; set SMART_FHIR_UPSTREAM_URL to this URL, and SMART_FHIR_UPSTREAM_AUTH with its settings'
}
