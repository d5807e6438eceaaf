import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import { describeContainer, listPublishedPorts, readCommands, readServices } from './compose.ts'
import { addAdministrator, launchAs, splitCommand, stopAll } from './journey.ts'
import { type Container, type Finished, MACHINE } from './machine.ts'
import { type Surroundings, UPSTREAM } from './surroundings.ts'
import { forward, isOk } from './world.ts'

/** Types the commands at the head of compose.yaml, as `docker compose` would perform them. */
export async function tryCompose(given: Surroundings): Promise<void> {
  const { machine, folder, atEnd, note } = given
  const [prepare = '', up, ...commands] = readCommands()
  assert.equal(up, 'docker compose up --build')
  const project = join(folder, 'project')
  mkdirSync(project)
  execFileSync('sh', ['-euc', prepare], { cwd: project })
  // Every command gets the variables from this file, and none from the shell.
  const findServices = () => readServices(parseEnv(readFileSync(join(project, '.env'), 'utf8')))
  const services = findServices()
  const environment = services.auth?.environment ?? assert.fail('no service auth')
  const hosts = { database: MACHINE, hapi: UPSTREAM }
  given.nameHosts(hosts)
  await given.openDatabase('sallyport')
  await given.openUpstream(environment.SMART_FHIR_UPSTREAM_URL ?? '')
  const network = await machine.createNetwork()
  const ports = listPublishedPorts(services.network ?? assert.fail('no service network'))
  for (const port of ports)
    atEnd((await forward({ host: '127.0.0.1', port }, { host: network.address, port })).close)

  const containers: Container[] = []
  for (const [name, service] of Object.entries(services))
    if (service.image === 'sallyport')
      containers.push(await machine.start(describeContainer(name, service, { network, hosts })))
  assert.equal(containers.length, 3)
  await waitUntilHealthy(given, ports, containers)
  note('the servers are ready')

  const run = async (line: string, stdin?: string): Promise<Finished> => {
    const [, name = '', words = ''] = /^docker compose run --rm (\w+) (.*)$/.exec(line) ?? []
    const container = describeContainer(name, findServices()[name] ?? assert.fail(line), { network, hosts })
    return (await machine.start({ ...container, args: splitCommand(words), stdin })).ended()
  }
  const username = await addAdministrator(commands, run)
  note('there is an administrator')
  assert.match(containers.map(it => it.log()).join('\n'), /shown only once/)
  const { SMART_ISSUER_URL = '', SMART_APP_URL = '' } = environment
  await launchAs(username, { issuerUrl: SMART_ISSUER_URL, appUrl: SMART_APP_URL }, true)
  note('an app was launched')
  await stopAll(containers)
}

/** Until the servers say so, and the healthcheck of the image does. */
async function waitUntilHealthy(
  { config }: Surroundings,
  ports: readonly number[],
  containers: readonly Container[],
): Promise<void> {
  const asked = ports.map(port => `http://127.0.0.1:${port}/readyz`)
  while (!(await Promise.all(asked.map(isOk))).every(Boolean)) {
    for (const container of containers) assert(container.isRunning(), container.log())
    await pause(200)
  }
  for (const container of containers) {
    const { exitCode, output } = await container.exec(config.healthcheck)
    assert.equal(exitCode, 0, output)
  }
}
