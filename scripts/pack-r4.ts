/**
 * Packs what HL7 publishes with R4 into `scripts/compile-r4/r4.ndjson.br`, which is committed: the definitions that
 * `scripts/compile-r4.ts` compiles and the examples that tests read. The package that they come from has 190 MB, so it
 * is no dependency: `npm pack hl7.fhir.r4.examples@4.0.1`, unpack it, `node scripts/pack-r4.ts <folder>`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'

type Published = Readonly<Record<string, unknown>>

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Cannot pack: name the folder of the unpacked package')

/** What nothing reads: Bundles that repeat the definitions, and profiles. */
function isLeftOut(name: string, { derivation, resourceType }: Published): boolean {
  return (
    /^Bundle-(dataelements|extensions|profiles|resources|searchParams|types|v2|v3|valueset|conceptmaps)/.test(
      name,
    ) ||
    (resourceType === 'StructureDefinition' && derivation === 'constraint')
  )
}

/** A definition without its narrative, and without what its snapshot says again. */
function slim(resource: Published): Published {
  const { resourceType, text: _text, differential: _differential, mapping: _mapping, ...rest } = resource
  return typeof resourceType === 'string' && DEFINITIONS.has(resourceType)
    ? { resourceType, ...rest }
    : resource
}

const DEFINITIONS = new Set(['StructureDefinition', 'ValueSet', 'CodeSystem', 'SearchParameter'])

const lines = readdirSync(folder)
  .filter(name => /^[A-Z][A-Za-z]+-.+\.json$/.test(name))
  .toSorted()
  .map((name): [string, Published] => [name, JSON.parse(readFileSync(join(folder, name), 'utf8'))])
  .filter(([name, resource]) => !isLeftOut(name, resource))
  .map(([name, resource]) => JSON.stringify([name, slim(resource)]))

const packed = brotliCompressSync(lines.join('\n'), {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: Number(process.argv[3] ?? constants.BROTLI_MAX_QUALITY),
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  },
})
writeFileSync(new URL('./compile-r4/r4.ndjson.br', import.meta.url), packed)
