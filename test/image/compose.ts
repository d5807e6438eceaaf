/** Does what `docker compose up` does with the services of compose.yaml that run the image. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import type { ContainerSpec, Mount, Network } from './machine.ts'

const FILE = join(resolve(import.meta.dirname, '../..'), 'compose.yaml')

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly tmpfs?: readonly string[]
  readonly network_mode?: string
  readonly ports?: readonly string[]
}

/** Of the services that run the image. */
const KNOWN = [
  'build',
  'image',
  'read_only',
  'cap_drop',
  'security_opt',
  'tmpfs',
  'restart',
  'network_mode',
  'depends_on',
  'command',
  'environment',
]

/** The lines of the file's head that a reader types: those that make `.env`, start the services, and add an administrator. */
export function readCommands(): readonly string[] {
  const [head = ''] = readFileSync(FILE, 'utf8').split(/^name:/m)
  return [...head.matchAll(/^# {3}(\S.*)$/gm)].map(([, line = '']) => line)
}

/** The services, with the variables of `.env` and of no shell. */
export function readServices(variables: NodeJS.Dict<string>): Readonly<Record<string, Service>> {
  const text = readFileSync(FILE, 'utf8').replace(
    /\$\{(\w+)(?::\?([^}]*))?\}/g,
    (_, name: string, why: string) => {
      return variables[name] ?? assert.fail(`${name} is not set: ${why}`)
    },
  )
  return parse(text, { merge: true }).services
}

export function listPublishedPorts({ ports = [] }: Service): readonly number[] {
  return ports.map(entry => {
    const [, from, to] = /^127\.0\.0\.1:(\d+):(\d+)$/.exec(entry) ?? assert.fail(entry)
    assert.equal(from, to)
    return Number(from)
  })
}

/** The container of a service. */
export function describeContainer(
  name: string,
  service: Service,
  { network, hosts }: { readonly network: Network; readonly hosts: Readonly<Record<string, string>> },
): ContainerSpec {
  const unknown = Object.keys(service).filter(key => !KNOWN.includes(key))
  assert.deepEqual(unknown, [], `fields of ${name} that this test does not know`)
  assert.equal(service.network_mode, 'service:network')
  assert.deepEqual(service.cap_drop, ['ALL'])
  assert.deepEqual(service.security_opt, ['no-new-privileges:true'])
  return {
    name,
    ...(service.command && { args: service.command }),
    env: service.environment ?? {},
    mounts: (service.tmpfs ?? []).map(readTmpfs),
    isReadOnly: service.read_only ?? false,
    hosts,
    network,
  }
}

function readTmpfs(entry: string): Mount {
  const [, path = '', options = ''] = /^([^:]+):(.*)$/.exec(entry) ?? []
  return { path, options: `tmpfs,${options}` }
}
