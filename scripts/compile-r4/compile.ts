import { compileCodes, listRequiredBindings, type Terminology } from './codes.ts'
import { compileInvariants } from './invariants.ts'
import { compileSearchParameters, type SearchParameterSource } from './search-parameters.ts'
import { readPublished } from './source.ts'
import { compileStructure, type StructureSource, shortValueSet } from './structures.ts'
import { groupProfiles, readUsCore, selectAdded } from './us-core.ts'

/** The text of `src/fhir/definitions/r4.json`. */
export function compileR4(): string {
  const terminology = readTerminology()
  const structures = readPublished<StructureSource>('StructureDefinition').filter(isCompiled)
  const resources = structures
    .filter(it => it.kind === 'resource' && !it.abstract)
    .map(it => it.type)
    .toSorted()
  const usCore = readUsCore()
  const parameters = readPublished<SearchParameterSource>('SearchParameter')
  const definitions = {
    source:
      'HL7 FHIR R4 (4.0.1), https://hl7.org/fhir/R4, CC0-1.0; HL7 US Core 6.1.0 to 9.0.0, https://hl7.org/fhir/us/core, CC0-1.0',
    resources,
    structures: Object.fromEntries(structures.flatMap(it => [...compileStructure(it)])),
    codes: Object.fromEntries(
      listRequiredBindings(structures).flatMap(it => compileValueSet(it, terminology)),
    ),
    invariants: compileInvariants(structures),
    search: compileSearchParameters([...parameters, ...selectAdded(usCore, parameters)], resources),
    profiles: groupProfiles(usCore),
    patientCompartment: readCompartment(),
  }
  return `${JSON.stringify(definitions)}\n`
}

/** Resource types and data types; no profiles on them, and no primitives, which are written by hand. */
function isCompiled(structure: StructureSource): boolean {
  return (
    structure.derivation !== 'constraint' &&
    (structure.kind === 'resource' || structure.kind === 'complex-type')
  )
}

function readTerminology(): Terminology {
  const codeSystems = readPublished<{ url: string }>('CodeSystem')
  const valueSets = readPublished<{ url: string }>('ValueSet')
  return {
    codeSystems: new Map(codeSystems.map(it => [it.url, it])),
    valueSets: new Map(valueSets.map(it => [it.url, it])),
  }
}

function readCompartment(): Record<string, readonly string[]> {
  const all = readPublished<{ id: string; resource: { code: string; param?: string[] }[] }>(
    'CompartmentDefinition',
  )
  const patient = all.find(it => it.id === 'patient')
  if (patient === undefined) throw new Error('Cannot compile R4: the patient compartment is not published')
  return Object.fromEntries(
    patient.resource.flatMap(it => (it.param === undefined ? [] : [[it.code, it.param]])),
  )
}

function compileValueSet(url: string, terminology: Terminology): [string, unknown][] {
  const codes = compileCodes(url, terminology)
  return codes === undefined ? [] : [[shortValueSet(url), codes]]
}
