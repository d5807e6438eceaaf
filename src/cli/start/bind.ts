import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { listen } from '../../web/index.ts'
import { CommandFailure } from '../command.ts'
import type { ServerName } from './server-names.ts'

const PORTS = {
  auth: ['authPort', 'SMART_AUTH_PORT'],
  fhir: ['fhirPort', 'SMART_FHIR_PORT'],
  app: ['appPort', 'SMART_APP_PORT'],
} as const

/** Listens where the settings say. A port that cannot be had is named in one line. */
export async function bindServer(name: ServerName, app: FastifyInstance, settings: Settings): Promise<void> {
  const [key, variable] = PORTS[name]
  try {
    await listen(app, settings[key], settings.bind)
  } catch (error) {
    const where = `port ${settings[key]} (${variable}) of ${settings.bind.join(', ')} (SMART_BIND)`
    throw new CommandFailure(`Cannot start the ${name} server on ${where}: ${reasonOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return REASONS[code] ?? (error instanceof Error ? error.message : String(error))
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine does not have the address',
}
