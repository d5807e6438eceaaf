/** The licence texts of everything in the image: a folder for each component of its bill of materials. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import type { Packages } from '../release/bill.ts'

/** Whom the packages name that contain no text of their licence: author and year, as in their repositories. */
const HOLDERS: Readonly<Record<string, string>> = {
  'abstract-logging': 'James Sumners',
  'pg-types': 'Brian M. Carlson',
  pgpass: 'Hannes Hörl',
  'strict-event-emitter-types': 'Brian Terlson',
}

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
const ISC = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
const TEXTS: Readonly<Record<string, string>> = { MIT, ISC }

/** Copies the licence texts of the packages below `folder`. A package without a text needs an entry in `HOLDERS`. */
export function copyPackageLicences(packages: Packages, folder: string, into: string): void {
  for (const [path, { name = '', version, license }] of Object.entries(packages)) {
    const files = readdirSync(join(folder, path)).filter(file => /^(licen[sc]e|copying|notice)/i.test(file))
    if (files.length > 0)
      copyFiles(
        files.map(file => join(folder, path, file)),
        join(into, `${name}@${version}`),
      )
    else writeText(join(into, `${name}@${version}`), name, license)
  }
}

function writeText(folder: string, name: string, license: string): void {
  const [text, holder] = [TEXTS[license], HOLDERS[name]]
  if (text === undefined || holder === undefined)
    throw new Error(`${name} contains no text of its licence, ${license}: add its author to HOLDERS`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'LICENSE'), `Copyright (c) ${holder}\n\n${text}`)
}

/** Copies the copyright file of a Debian package, and the licences that it refers to. */
export function copyDebianLicences(name: string, version: string, into: string): void {
  const copyright = realpathSync(join('/usr/share/doc', name, 'copyright'))
  const named = readFileSync(copyright, 'utf8').matchAll(/\/usr\/share\/common-licenses\/[\w.-]*\w/g)
  const common = [...new Set([...named].map(([path]) => path))].filter(path => existsSync(path))
  copyFiles([copyright, ...common], join(into, `${name}@${version}`))
}

export function copyFiles(files: readonly string[], into: string): void {
  mkdirSync(into, { recursive: true })
  for (const file of files) copyFileSync(file, join(into, basename(file)))
}
