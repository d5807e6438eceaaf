import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestCertificate } from '../support/certificate.ts'
import { databaseUrl, query } from '../support/postgres.ts'
import type { ImageConfig } from './dockerfile.ts'
import { addAddress, MACHINE, type Machine } from './machine.ts'
import { startDatabase, startIngress, startUpstreamAt } from './world.ts'

/** What a scenario finds around the servers. Everything ends with it. */
export interface Surroundings {
  readonly machine: Machine
  readonly config: ImageConfig
  readonly folder: string
  /** Of all public URLs. */
  readonly certificate: TestCertificate
  /** Printed if the scenario fails. */
  note(step: string): void
  /** Ends something after the servers have ended. */
  atEnd(end: () => unknown): void
  /** Makes names known to the machine's own programs. Pods get them as their /etc/hosts. */
  nameHosts(hosts: Readonly<Record<string, string>>): void
  /** A database of a role, whose tables the role `sallyport` may use and not change. */
  openDatabase(owner: string): Promise<void>
  /** A FHIR server at the URL. With https, a proxy in front of it terminates TLS. */
  openUpstream(url: string): Promise<void>
}

/** The address of the FHIR server of somebody else. */
export const UPSTREAM = '10.96.0.2'
const BEHIND_PROXY = 8090

export function describeSurroundings(
  machine: Machine,
  config: ImageConfig,
  folder: string,
  ends: (() => unknown)[],
): Surroundings {
  const atEnd = (end: () => unknown) => void ends.push(end)
  const certificate = {
    cert: readFileSync(join(folder, 'ca.pem'), 'utf8'),
    key: readFileSync(join(folder, 'key.pem'), 'utf8'),
  }
  addAddress(UPSTREAM)
  return {
    machine,
    config,
    folder,
    certificate,
    atEnd,
    note: step => void process.stdout.write(`${new Date().toISOString()} ${step}\n`),
    nameHosts(hosts) {
      const file = join(folder, 'hosts')
      const lines = Object.entries({ localhost: '127.0.0.1', ...hosts }).map(
        ([name, at]) => `${at} ${name}\n`,
      )
      writeFileSync(file, lines.join(''))
      execFileSync('mount', ['--bind', file, '/etc/hosts'])
    },
    async openDatabase(owner) {
      const database = await startDatabase({ host: MACHINE, port: 5432 })
      atEnd(database.close)
      for (const role of new Set(['sallyport', owner])) await query(database.url, `create role ${role} login`)
      await query(database.url, `create database sallyport owner ${owner}`)
      const own = databaseUrl(database.url, 'sallyport')
      for (const right of ['select, insert, update, delete on tables', 'usage on sequences'])
        await query(own, `alter default privileges for role ${owner} grant ${right} to sallyport`)
    },
    async openUpstream(url) {
      const { protocol, host, port } = new URL(url)
      const isSecure = protocol === 'https:'
      const backend = { host: UPSTREAM, port: isSecure ? BEHIND_PROXY : Number(port || 80) }
      atEnd((await startUpstreamAt(url, backend, join(folder, 'upstream'))).close)
      const place = { host: UPSTREAM, port: Number(port || 443) }
      if (isSecure)
        atEnd((await startIngress(certificate, place, () => [{ host, path: '/', backend }])).close)
    },
  }
}
