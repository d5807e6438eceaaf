/**
 * `scenario.ts compose|<values file> <image> <folder>`: starts the image's files as compose.yaml or the chart does, within the
 * namespaces that the test enters (namespaces.ts), and uses them as an administrator and a clinician do. Fails if anything fails.
 */
import assert from 'node:assert/strict'
import { listValuesFiles } from './chart.ts'
import { readDockerfile } from './dockerfile.ts'
import { openMachine } from './machine.ts'
import { describeSurroundings } from './surroundings.ts'
import { tryChart } from './try-chart.ts'
import { tryCompose } from './try-compose.ts'

const [, , name = '', image = '', folder = ''] = process.argv
const config = readDockerfile()
const ends: (() => unknown)[] = []
// The test that started this process has ended.
process.stdin.on('end', () => process.exit(1)).resume()
const machine = openMachine(image, config, folder)
try {
  const surroundings = describeSurroundings(machine, config, folder, ends)
  const values = listValuesFiles().find(it => it.name === name)
  if (name === 'compose') await tryCompose(surroundings)
  else await tryChart(surroundings, values ?? assert.fail(`no values ${name}`))
} finally {
  await machine.close()
  for (const end of ends.reverse()) await end()
  process.stdin.destroy()
}
