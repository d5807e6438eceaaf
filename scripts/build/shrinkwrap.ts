/** The members of a package, in its manifest or a lock file. */
export interface Manifest {
  readonly [name: string]: unknown
}

interface Lock {
  readonly lockfileVersion: number
  readonly packages: Readonly<Record<string, Manifest>>
}

/** The versions and checksums of the tests, for those who install the package: the lock file, without what only developers install. */
export function makeShrinkwrap(manifest: Manifest, { lockfileVersion, packages }: Lock): object {
  const { name, version, license, dependencies, optionalDependencies, bin, engines } = manifest
  const own = { name, version, license, dependencies, optionalDependencies, bin, engines }
  return {
    name,
    version,
    lockfileVersion,
    requires: true,
    packages: { '': own, ...Object.fromEntries(placeInstalled(packages)) },
  }
}

/**
 * The dependencies of the manifest, in exact versions: those of the dependencies too, because npm uses the shrinkwrap of a package from
 * a registry, and ignores that of a file. Of a package that is there in two versions, the one below another package is left to npm.
 */
export function pinDependencies({ packages }: Lock): Manifest {
  const pinned = placeInstalled(packages).flatMap(([path, { version, optional }]) => {
    const [, name = '', ...below] = path.split('node_modules/')
    return below.length === 0 ? [{ name, version, isOptional: optional === true }] : []
  })
  const choose = (optional: boolean) =>
    Object.fromEntries(
      pinned.filter(it => it.isOptional === optional).map(({ name, version }) => [name, version]),
    )
  return { dependencies: choose(false), optionalDependencies: choose(true) }
}

type Entry = readonly [path: string, Manifest]

/**
 * The packages by the folders that npm installs them in. A package is below another one in the lock file if a package of the same name
 * that only developers install is above: it moves up, with those below it.
 */
function placeInstalled(packages: Lock['packages']): readonly Entry[] {
  const installed = listInstalled(packages)
  const taken = new Set(installed.map(([path]) => path))
  const moved = new Map<string, string>()
  return installed.map(([path, manifest]) => {
    const [, parent = '', own = path] = /^(.*)\/(node_modules\/.*)$/.exec(path) ?? []
    const isFirst = !parent.includes('/node_modules/') && !taken.has(own)
    const target = parent === '' || isFirst ? own : `${moved.get(parent) ?? parent}/${own}`
    moved.set(path, target)
    taken.add(target)
    return [target, manifest]
  })
}

function listInstalled(packages: Lock['packages']): readonly Entry[] {
  // The packages with a Node, which the launcher installs.
  const left = new Set(Object.keys(packages['']?.optionalDependencies ?? {}).map(it => `node_modules/${it}`))
  return Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true && !left.has(path))
}
