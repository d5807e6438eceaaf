import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CHART,
  findRoutes,
  findSettings,
  type Rendered,
  readRendered,
  readValues,
  type ValuesFile,
} from './chart.ts'
import { openCluster } from './cluster.ts'
import { addAdministrator, launchAs, splitCommand, stopAll } from './journey.ts'
import { MACHINE } from './machine.ts'
import { createPrerequisites, PROVIDER } from './prerequisites.ts'
import { type Surroundings, UPSTREAM } from './surroundings.ts'
import { startIngress, startProvider } from './world.ts'

/** Installs the chart with a values file, and types the commands of its notes. */
export async function tryChart(given: Surroundings, file: ValuesFile): Promise<void> {
  const { machine, config, certificate, atEnd, note } = given
  const [rendered, values] = [readRendered(file), readValues(file)]
  const { objects } = rendered
  const settings = findSettings(rendered)
  const hostOf = (variable: string) => new URL(settings[variable] ?? assert.fail(variable)).hostname
  const hosts = {
    [hostOf('SMART_ISSUER_URL')]: MACHINE,
    [hostOf('SMART_FHIR_BASE_URL')]: MACHINE,
    [hostOf('SMART_APP_URL')]: MACHINE,
    [hostOf('SMART_FHIR_UPSTREAM_URL')]: UPSTREAM,
    'db.ehr.example': MACHINE,
    [PROVIDER.host]: MACHINE,
  }
  given.nameHosts(hosts)
  await given.openDatabase(values.migration?.existingSecret === undefined ? 'sallyport' : 'owner')
  await given.openUpstream(settings.SMART_FHIR_UPSTREAM_URL ?? '')
  const cluster = openCluster(machine, config, { hosts, certificate: certificate.cert })
  atEnd(cluster.close)
  createPrerequisites(cluster, values, certificate.cert)
  const listRoutes = () => [
    ...findRoutes(rendered).map(({ service, ...route }) => ({
      ...route,
      backend: cluster.findBackend(service),
    })),
    { host: PROVIDER.host, path: '/', backend: { host: MACHINE, port: 8091 } },
  ]
  if (values.secretKeys?.includes('SMART_LOGIN_PROVIDERS'))
    atEnd((await startProvider(PROVIDER.origin, { host: MACHINE, port: 8091 })).close)
  atEnd((await startIngress(certificate, { host: MACHINE, port: 443 }, listRoutes)).close)
  await cluster.install(objects)
  note('the servers are ready')

  const exec = (line: string, stdin?: string) => {
    const [, deployment = '', words = ''] = /^kubectl .*exec -\w+ deploy\/(\S+) -- (.*)$/s.exec(line) ?? []
    return cluster.exec(deployment, splitCommand(words), stdin)
  }
  const username = await addAdministrator(readCommands(file, rendered), exec)
  note('there is an administrator')
  for (const { exitCode, output } of await cluster.test(objects)) assert.equal(exitCode, 0, output)
  note('helm test succeeded')
  const log = cluster.pods.get('sallyport-auth')?.container.log() ?? ''
  assert.equal(/printed its random password/.test(rendered.notes), /shown only once/.test(log), log)
  const { SMART_ISSUER_URL: issuerUrl = '', SMART_APP_URL: appUrl = '' } = settings
  await launchAs(username, { issuerUrl, appUrl }, cluster.pods.has('sallyport-app'))
  note('an app was launched')
  const verified = await cluster.runCronJobs(objects)
  assert.equal(verified.length, values.verification?.enabled ? 1 : 0)
  for (const { exitCode, output } of verified) {
    assert.equal(exitCode, 0, output)
    assert.match(output, /"problems": \[\]/)
  }
  note('the trail was verified')
  await stopAll([...cluster.pods.values()].map(({ container }) => container))
}

/** The commands of the notes; with the values of the README, those of the README. */
function readCommands({ name }: ValuesFile, { notes }: Rendered): readonly string[] {
  const text = name === 'readme' ? readFileSync(join(CHART, 'README.md'), 'utf8') : notes
  const found = [...text.matchAll(/^ *(kubectl (?:--namespace ehr )?exec (?:.*\\\n)*.*)$/gm)]
  return found.map(([, command = '']) => command.replaceAll('\\\n', ' '))
}
