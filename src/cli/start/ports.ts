import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { describeError, findCode } from '../../core/index.ts'
import { checkPort, listen } from '../../web/http/index.ts'
import { CommandFailure } from '../command.ts'
import type { Parts, ServerName } from './parts.ts'

const PORTS = {
  auth: ['authPort', 'SMART_ISSUER_URL, or SMART_AUTH_PORT behind a proxy'],
  fhir: ['fhirPort', 'SMART_FHIR_BASE_URL, or SMART_FHIR_PORT behind a proxy'],
  app: ['appPort', 'SMART_APP_URL, or SMART_APP_PORT behind a proxy'],
} as const

/** Before anything is prepared: the first start creates keys and sample patients. */
export async function checkPorts({ names, settings }: Parts): Promise<void> {
  for (const name of names)
    await usePort((port, hosts) => checkPort(port, hosts), describePort(name, settings))
}

export function bindServer(name: ServerName, app: FastifyInstance, settings: Settings): Promise<void> {
  return usePort((port, hosts) => listen(app, port, hosts), describePort(name, settings))
}

function describePort(name: ServerName, settings: Settings): Port {
  const [key, variables] = PORTS[name]
  return {
    port: settings[key],
    hosts: settings.bind,
    name: `${name} server`,
    variables,
    bindVariable: 'SMART_BIND',
  }
}

interface Port {
  readonly port: number
  readonly hosts: readonly string[]
  readonly name: string
  readonly variables: string
  readonly bindVariable: string
}

export async function usePort(
  use: (port: number, hosts: readonly string[]) => Promise<unknown>,
  { port, hosts, ...about }: Port,
): Promise<void> {
  try {
    await use(port, hosts)
  } catch (error) {
    const where = `port ${port} of ${hosts.join(', ')}`
    const settings = `To change the port, set ${about.variables}; to change the address, set ${about.bindVariable}`
    throw new CommandFailure(
      `Cannot start the ${about.name} on ${where}: ${describeReason(error)}. ${settings}`,
    )
  }
}

function describeReason(error: unknown): string {
  return REASONS[findCode(error) ?? ''] ?? describeError(error)
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this host does not have the address',
}
