/**
 * Collects the profiles and search parameters of US Core into `scripts/compile-r4/us-core.json`, which is committed:
 * `node scripts/pack-us-core.ts <folder> …`, with the unpacked package `hl7.fhir.us.core` of each version, the newest last. What
 * several versions have is as in the newest.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SearchParameterSource } from './compile-r4/search-parameters.ts'

interface Published extends SearchParameterSource {
  readonly resourceType: string
  readonly url: string
  readonly kind?: string
}

const published = process.argv.slice(2).flatMap(folder =>
  readdirSync(folder)
    .filter(name => name.endsWith('.json'))
    .toSorted()
    .map((name): Published => JSON.parse(readFileSync(join(folder, name), 'utf8'))),
)

const profiles = new Map(
  published
    .filter(it => it.resourceType === 'StructureDefinition' && it.kind === 'resource')
    .map(({ url, type }) => [url, type]),
)

const parameters = new Map(
  published
    .filter(it => it.resourceType === 'SearchParameter')
    .map(({ id, code, base, type, expression, target }) => [
      id,
      { id, code, base, type, expression, target },
    ]),
)

writeFileSync(
  new URL('./compile-r4/us-core.json', import.meta.url),
  `${JSON.stringify(
    {
      source: 'HL7 US Core 6.1.0, 7.0.0, 8.0.0 and 9.0.0, https://hl7.org/fhir/us/core, CC0-1.0',
      profiles: Object.fromEntries([...profiles].toSorted()),
      search: [...parameters.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    },
    undefined,
    2,
  )}\n`,
)
