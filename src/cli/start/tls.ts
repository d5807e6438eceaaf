import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'

export interface Tls {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Certificate and key, read and tried once, so that a wrong file stops the start and not the first request. */
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
