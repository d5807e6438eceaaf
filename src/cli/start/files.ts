import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { UpstreamTls } from '../../backends/upstream/index.ts'
import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'

export interface Tls {
  readonly cert: string
  readonly key: string
}

/** Reads and tests certificate and key, so that a wrong file stops the start or the reload and not a request. */
export function readTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const tls = { cert: readPem('SMART_TLS_CERT', tlsCert), key: readPem('SMART_TLS_KEY', tlsKey) }
  return testTls('SMART_TLS', tls)
}

function testTls<T extends UpstreamTls>(prefix: string, tls: T): T {
  try {
    createSecureContext(tls)
    return tls
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(`Cannot use ${prefix}_CERT with ${prefix}_KEY: ${reason}`)
  }
}

function readPem(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CommandFailure(`Cannot read ${variable} ${path}: ${code}`)
  }
}

export function readFeedTls(settings: Settings['auditFeeds']): UpstreamTls {
  return readClientTls('SMART_AUDIT_TLS', settings)
}

export function readUpstreamTls(settings: Settings['fhir']['upstream']): UpstreamTls {
  return readClientTls('SMART_FHIR_UPSTREAM_TLS', settings)
}

type ClientTlsSettings = Pick<Settings['auditFeeds'], 'tlsCert' | 'tlsKey' | 'tlsCa'>

function readClientTls(prefix: string, { tlsCert, tlsKey, tlsCa }: ClientTlsSettings): UpstreamTls {
  return testTls(prefix, {
    ...(tlsCert !== undefined && { cert: readPem(`${prefix}_CERT`, tlsCert) }),
    ...(tlsKey !== undefined && { key: readPem(`${prefix}_KEY`, tlsKey) }),
    ...(tlsCa !== undefined && { ca: readPem(`${prefix}_CA`, tlsCa) }),
  })
}
