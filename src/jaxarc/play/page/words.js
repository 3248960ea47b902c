// Numbers and names as people read them.

export const percent = (share) => `${(100 * share).toFixed(share < 1 && share > 0.999 ? 2 : 1).replace(/\.0$/, "")} %`;
export const signed = (number) => number === 0 ? "0" : `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3).replace(/0$/, "")}`;
export const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
export const capital = (text) => text[0].toUpperCase() + text.slice(1);
export const sizeOf = (grid) => `${grid.length} × ${grid[0].length}`;
export const pairName = (split, pair) => `${split === "test" ? "Test" : "Demonstration"} ${pair + 1}`;
