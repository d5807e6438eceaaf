/** Whether the program was compiled, as the installed package is. In a clone, Node runs the TypeScript files. */
const isInstalled = import.meta.url.endsWith('.js')

/** How to run a command: what a person types before its name. */
export const HOW = isInstalled ? 'sallyport' : 'npm run -s sallyport --'
