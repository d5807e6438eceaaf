export interface ElementSource {
  readonly path: string
  readonly min: number
  readonly max: string
  readonly isModifier?: boolean
  readonly base?: { readonly path: string }
  readonly contentReference?: string
  readonly type?: readonly {
    readonly code: string
    readonly profile?: readonly string[]
    readonly targetProfile?: readonly string[]
    readonly extension?: readonly { readonly url: string; readonly valueUrl?: string }[]
  }[]
  readonly binding?: { readonly strength: string; readonly valueSet?: string }
  readonly constraint?: readonly {
    readonly key: string
    readonly severity: string
    readonly human: string
    readonly expression: string
    readonly source?: string
  }[]
}

export interface StructureSource {
  readonly kind: string
  readonly type: string
  readonly abstract: boolean
  readonly derivation?: string
  readonly baseDefinition?: string
  readonly snapshot: { readonly element: readonly ElementSource[] }
}

/** `base` is where inherited elements are; an element reads `min max types #binding`, with `!` after `min` if it is a modifier (see `ElementText` in structures.ts). */
export interface CompiledStructure {
  readonly base?: string
  readonly elements: Readonly<Record<string, string>>
}

const profileRoot = 'http://hl7.org/fhir/StructureDefinition/'

/** One structure for the type, and one for each of its backbone elements, under its path (`Patient.contact`). */
export function* compileStructure(source: StructureSource): Generator<[string, CompiledStructure]> {
  const elements = source.snapshot.element.slice(1)
  const nested = elements.filter(it => isBackbone(it)).map(it => it.path)
  const base = source.baseDefinition?.replace(profileRoot, '')
  yield [
    source.type,
    {
      ...(base === undefined ? {} : { base }),
      elements: compileElements(source.type, source.type, elements),
    },
  ]
  for (const path of nested) {
    const inherited = elements.some(it => it.path === `${path}.modifierExtension`)
      ? 'BackboneElement'
      : 'Element'
    yield [path, { base: inherited, elements: compileElements(path, source.type, elements) }]
  }
}

function compileElements(
  path: string,
  type: string,
  elements: readonly ElementSource[],
): Record<string, string> {
  const own = elements.filter(it => findParent(it.path) === path && !isInherited(it, type, path))
  return Object.fromEntries(own.map(it => [it.path.slice(path.length + 1), elementText(it)]))
}

/** What `Resource`, `DomainResource`, `Element` and `BackboneElement` already say. */
function isInherited(element: ElementSource, type: string, path: string): boolean {
  const name = element.path.slice(path.length + 1)
  if (path !== type) return name === 'id' || name === 'extension' || name === 'modifierExtension'
  return element.base !== undefined && findParent(element.base.path) !== type
}

function elementText(element: ElementSource): string {
  const max = element.max === '*' ? '*' : element.max === '1' ? '1' : `${element.max}`
  const binding =
    element.binding?.strength === 'required' ? ` #${shortValueSet(element.binding.valueSet)}` : ''
  const modifier = element.isModifier ? '!' : ''
  return `${element.min}${modifier} ${max} ${typeText(element)}${binding}`
}

function typeText(element: ElementSource): string {
  if (element.contentReference !== undefined) return `@${element.contentReference.slice(1)}`
  if (isBackbone(element)) return `@${element.path}`
  if (element.path === 'Resource.id') return 'id'
  return (element.type ?? []).map(it => typeName(it)).join(',')
}

function typeName(type: NonNullable<ElementSource['type']>[number]): string {
  if (type.code.startsWith('http://hl7.org/fhirpath/')) return type.extension?.[0]?.valueUrl ?? 'string'
  const profiles = (type.targetProfile ?? []).filter(it => it.startsWith(profileRoot))
  const targets = profiles.map(it => it.replace(profileRoot, ''))
  const narrowed = type.code === 'Reference' && targets.length > 0 && !targets.includes('Resource')
  if (type.profile?.includes(`${profileRoot}SimpleQuantity`)) return `${type.code}~`
  return narrowed ? `Reference(${targets.join('|')})` : type.code
}

function isBackbone(element: ElementSource): boolean {
  const code = element.type?.[0]?.code
  return code === 'BackboneElement' || (code === 'Element' && element.path.includes('.'))
}

function findParent(path: string): string {
  return path.slice(0, path.lastIndexOf('.'))
}

export function shortValueSet(url: string | undefined): string {
  return (url ?? '').replace(/\|.*$/, '').replace('http://hl7.org/fhir/ValueSet/', '')
}
